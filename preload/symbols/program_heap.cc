#include "preload/symbols/program_heap.h"

#include <dlfcn.h>

#include <atomic>

#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit std::atomic<void*> g_malloc{nullptr};
constinit std::atomic<void*> g_calloc{nullptr};
constinit std::atomic<void*> g_free{nullptr};

// The first one in the global scope: a program may bring its own, in front of every library.
void* Find(std::atomic<void*>& kept, const char* name) {
  void* found = kept.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = RealDlsym(RTLD_DEFAULT, name);
    kept.store(found, std::memory_order_release);
  }
  return found;
}

}  // namespace

void* ProgramAllocate(size_t bytes) {
  return reinterpret_cast<void* (*)(size_t)>(Find(g_malloc, "malloc"))(bytes);
}

void* ProgramAllocateZeroed(size_t count, size_t size) {
  return reinterpret_cast<void* (*)(size_t, size_t)>(Find(g_calloc, "calloc"))(count, size);
}

void ProgramFree(void* memory) {
  reinterpret_cast<void (*)(void*)>(Find(g_free, "free"))(memory);
}

}  // namespace deja::preload
