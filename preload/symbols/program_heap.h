// The program's allocator, for what crosses the border: memory that a hook gives to the program,
// which frees it, and memory that a function of the C library has allocated for Deja. `malloc` and
// `free` are Deja's own in here (common/runtime/own_malloc.cc).
#ifndef DEJA_PRELOAD_SYMBOLS_PROGRAM_HEAP_H_
#define DEJA_PRELOAD_SYMBOLS_PROGRAM_HEAP_H_

#include <cstddef>

namespace deja::preload {

void* ProgramAllocate(size_t bytes);
// As malloc, calloc and free of the program. Null if there is no memory.
void* ProgramAllocateZeroed(size_t count, size_t size);
void ProgramFree(void* memory);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SYMBOLS_PROGRAM_HEAP_H_
