#include "preload/meet/pipe_table.h"

#include <sched.h>
#include <sys/mman.h>

#include "format/tail/job_memory.h"
#include "preload/process/process_name.h"

namespace deja::preload {
namespace {

constexpr uint64_t kPipesMagic = 0x3273657069706a64;  // "djpipes2"
constexpr uint64_t kBeingMade = 1;                    // in place of an inode

size_t HomeOf(uint64_t inode, size_t slots) {
  return (inode * 0x9e3779b97f4a7c15u >> 32) % slots;
}

struct Token {
  uint32_t token = 0;
  int pid = 0;  // whose it is: a forked child's thread is another one
};
thread_local Token t_token;

void Begin(PipeSlot& slot, uint32_t made, uint64_t key, uint64_t peer) {
  slot.made.store(made);
  slot.key.store(key);
  slot.peer.store(peer);
  for (auto* word : {&slot.writer, &slot.reader, &slot.several, &slot.reads, &slot.turn,
                     &slot.epoch, &slot.free})
    word->store(0);
  slot.alone.store(0);
  slot.written.store(0);
}

}  // namespace

PipeTable* PipeTable::Map(const std::string& path) {
  void* memory = format::MapJobMemory(path, sizeof(PipeTable), kPipesMagic);
  if (memory == nullptr) return nullptr;
  madvise(memory, sizeof(PipeTable), MADV_DOFORK);
  return static_cast<PipeTable*>(memory);
}

PipeSlot* PipeTable::Find(uint64_t inode) {
  if (inode == 0) return nullptr;
  const size_t home = HomeOf(inode, kSlots);
  for (size_t i = 0; i < kProbes; ++i) {
    PipeSlot& slot = slots_[(home + i) % kSlots];
    if (slot.inode.load(std::memory_order_acquire) == inode) return &slot;
  }
  return nullptr;
}

PipeSlot* PipeTable::Add(uint64_t inode, uint64_t key, uint64_t peer) {
  const uint32_t made = made_.fetch_add(1) + 1;
  const size_t home = HomeOf(inode, kSlots);
  PipeSlot* chosen = Find(inode);
  for (size_t i = 0; chosen == nullptr && i < kProbes; ++i) {
    PipeSlot& slot = slots_[(home + i) % kSlots];
    uint64_t free = 0;
    if (slot.inode.compare_exchange_strong(free, kBeingMade)) chosen = &slot;
  }
  if (chosen == nullptr) {
    chosen = &slots_[home];
    for (size_t i = 1; i < kProbes; ++i) {
      PipeSlot& slot = slots_[(home + i) % kSlots];
      if (made - slot.made.load() > made - chosen->made.load()) chosen = &slot;
    }
    chosen->inode.store(kBeingMade);
  }
  Begin(*chosen, made, key, peer);
  chosen->inode.store(inode, std::memory_order_release);
  return chosen;
}

PipeSlot* PipeTable::FindOrAdd(uint64_t inode, uint64_t key) {
  constexpr int kPatience = 10'000;  // yields, for a process that is ended while it makes one
  const size_t home = HomeOf(inode, kSlots);
  for (size_t i = 0; i < kProbes; ++i) {
    PipeSlot& slot = slots_[(home + i) % kSlots];
    for (int patience = kPatience;;) {
      uint64_t there = slot.inode.load(std::memory_order_acquire);
      if (there == 0 && slot.inode.compare_exchange_strong(there, kBeingMade)) {
        Begin(slot, made_.fetch_add(1) + 1, key, 0);
        slot.inode.store(inode, std::memory_order_release);
        return &slot;
      }
      if (there == inode) return &slot;
      if (there != kBeingMade || patience-- == 0) break;
      sched_yield();
    }
  }
  return Add(inode, key, 0);
}

uint32_t PipeTable::AddMutex(uint64_t key) {
  const uint32_t number = mutexes_made_.fetch_add(1);
  if (number >= kMutexes) {
    mutexes_made_.store(kMutexes);
    return kMutexes;
  }
  mutexes_[number].key.store(key, std::memory_order_release);
  return number;
}

MutexSlot* PipeTable::Mutex(uint32_t number) {
  if (number >= kMutexes || mutexes_[number].key.load(std::memory_order_acquire) == 0)
    return nullptr;
  return &mutexes_[number];
}

uint32_t PipeTable::OwnToken() {
  const int pid = OwnProcessName().pid;
  if (t_token.token == 0 || t_token.pid != pid) t_token = {tokens_.fetch_add(1) + 1, pid};
  return t_token.token;
}

}  // namespace deja::preload
