// The heap of Deja's libraries inside the user's process.
//
// What they allocate must not come from the program's heap. A recording and a replay do not
// allocate the same, so the program's addresses and the contents of its fresh memory would differ.
// An allocator of the program's may also be what called a hook. Lists of free blocks by size,
// without locks: safe in signal handlers, in hooks that an allocator calls, and in forked children.
// Blocks of a size are kept for that size; only those of more than 4 MiB go back to the kernel.
#ifndef DEJA_COMMON_RUNTIME_OWN_HEAP_H_
#define DEJA_COMMON_RUNTIME_OWN_HEAP_H_

#include <cstddef>

namespace deja {

// `alignment`: a power of two. Null when there is no memory. A null pointer may be freed.
void* OwnAllocate(size_t bytes, size_t alignment = 16);
void OwnFree(void* memory);
// How much fits into the block, and whether a pointer is one of OwnAllocate's.
size_t OwnBytes(const void* memory);
bool IsOwnMemory(const void* memory);

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_OWN_HEAP_H_
