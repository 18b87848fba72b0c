// malloc and the related functions for the libraries inside the user's process. They are hidden:
// Deja's code and what is linked into it statically (libstdc++, zstd, the unwinder) take Deja's
// heap, and the program keeps its own.
//
// Memory that the C library allocated, or that the program will free, is the program's:
// preload/symbols/program_heap.h.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "common/runtime/own_heap.h"

extern "C" {

void* malloc(size_t bytes) noexcept {
  void* memory = deja::OwnAllocate(bytes);
  if (memory == nullptr) errno = ENOMEM;
  return memory;
}

// What is not of this heap is left alone: memory that is lost is better than a program that ends.
void free(void* memory) noexcept {
  if (memory != nullptr && deja::IsOwnMemory(memory)) deja::OwnFree(memory);
}

void* calloc(size_t count, size_t size) noexcept {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* memory = malloc(bytes);
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return memory;
}

void* realloc(void* old, size_t bytes) noexcept {
  if (old == nullptr) return malloc(bytes);
  const size_t room = deja::OwnBytes(old);
  if (bytes <= room) return old;
  void* memory = malloc(bytes);
  if (memory == nullptr) return nullptr;
  std::memcpy(memory, old, room);
  free(old);
  return memory;
}

int posix_memalign(void** out, size_t alignment, size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* memory = deja::OwnAllocate(bytes, alignment);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  void* memory = deja::OwnAllocate(bytes, alignment);
  if (memory == nullptr) errno = ENOMEM;
  return memory;
}

void* memalign(size_t alignment, size_t bytes) noexcept {
  return aligned_alloc(alignment, bytes);
}

size_t malloc_usable_size(void* memory) noexcept {
  return memory != nullptr ? deja::OwnBytes(memory) : 0;
}

}  // extern "C"
