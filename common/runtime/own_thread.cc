#include "common/runtime/own_thread.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "common/runtime/own_mapping.h"

namespace deja::format {
namespace {

constexpr size_t kStackBytes = 1 << 20;

constinit std::atomic<bool> g_loaded{false};

__attribute__((constructor(101))) void NoteLoaded() {
  g_loaded.store(true, std::memory_order_release);
}

}  // namespace

bool ThreadsMayStart() {
  return g_loaded.load(std::memory_order_acquire);
}

int StartOwnThread(pthread_t* thread, void* (*routine)(void*), void* argument) {
  void* stack = MapOwn(kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK);
  if (stack == MAP_FAILED) return pthread_create(thread, nullptr, routine, argument);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStackBytes);
  int error = pthread_create(thread, &attributes, routine, argument);
  pthread_attr_destroy(&attributes);
  if (error != 0) UnmapOwn(stack, kStackBytes);
  // The program's thread-local variables do not fit into that stack.
  return error == EINVAL ? pthread_create(thread, nullptr, routine, argument) : error;
}

}  // namespace deja::format
