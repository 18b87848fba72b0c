#include "preload/process/threads.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "common/runtime/own_mapping.h"

namespace deja::preload {
namespace {

constinit thread_local ThreadRecord* t_self __attribute__((tls_model("initial-exec"))) = nullptr;

// Records are carved from mapped blocks and never given back. The first ones need no system call,
// since the first event may come before anything works.
constexpr size_t kFirstRecords = 64;
constexpr size_t kBlockRecords = 256;
alignas(ThreadRecord) unsigned char g_first[kFirstRecords * sizeof(ThreadRecord)];
std::atomic<uint32_t> g_first_used{0};

struct Block {
  std::atomic<uint32_t> used{0};
  alignas(ThreadRecord) unsigned char records[kBlockRecords * sizeof(ThreadRecord)];
};
std::atomic<Block*> g_block{nullptr};

std::atomic<uint32_t> g_unnamed{0};

ThreadRecord* FromFirst() {
  uint32_t i = g_first_used.load(std::memory_order_relaxed);
  while (i < kFirstRecords &&
         !g_first_used.compare_exchange_weak(i, i + 1, std::memory_order_relaxed)) {
  }
  return i < kFirstRecords ? new (g_first + i * sizeof(ThreadRecord)) ThreadRecord : nullptr;
}

ThreadRecord* FromBlock(Block* block) {
  uint32_t i = block->used.fetch_add(1, std::memory_order_relaxed);
  return i < kBlockRecords ? new (block->records + i * sizeof(ThreadRecord)) ThreadRecord : nullptr;
}

Block* MapBlock() {
  void* memory = MapOwn(sizeof(Block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  return memory == MAP_FAILED ? nullptr : new (memory) Block;
}

}  // namespace

ThreadRecord* NewThreadRecord() {
  if (ThreadRecord* record = FromFirst()) return record;
  for (;;) {
    Block* block = g_block.load(std::memory_order_acquire);
    if (block != nullptr) {
      if (ThreadRecord* record = FromBlock(block)) return record;
    }
    Block* fresh = MapBlock();
    if (fresh == nullptr) return nullptr;
    if (!g_block.compare_exchange_strong(block, fresh, std::memory_order_acq_rel))
      munmap(fresh, sizeof(Block));
  }
}

void NameChild(ThreadRecord& parent, ThreadRecord& child) {
  uint32_t number = ++parent.children;
  int n = snprintf(child.name, sizeof child.name, "%s.%u", parent.name, number);
  if (n >= 0 && static_cast<size_t>(n) < sizeof child.name) return;
  // Beyond a depth of dozens the name is only unique, not stable.
  char tail[16];
  int tail_size = snprintf(tail, sizeof tail, "~%u", ++g_unnamed);
  size_t at = sizeof child.name - 1 - static_cast<size_t>(tail_size);
  std::memcpy(child.name, parent.name, sizeof child.name);
  std::memcpy(child.name + at, tail, static_cast<size_t>(tail_size) + 1);
}

void SetSelf(ThreadRecord* record) {
  t_self = record;
}

ThreadRecord& Self() {
  if (t_self != nullptr) return *t_self;
  ThreadRecord* record = NewThreadRecord();
  if (record == nullptr) {
    // No memory at all: all such threads share one record.
    static ThreadRecord shared{};
    record = &shared;
  }
  if (syscall(SYS_gettid) == syscall(SYS_getpid)) {
    std::strcpy(record->name, "0");
  } else {
    // Not created through pthread_create: by clone, or inside the C library.
    snprintf(record->name, sizeof record->name, "?%u", ++g_unnamed);
  }
  t_self = record;
  return *record;
}

}  // namespace deja::preload
