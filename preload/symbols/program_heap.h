// The program's allocator, for memory that crosses the border. A hook gives memory to the program,
// which frees it; a function of the C library has allocated memory for Deja. `malloc` and `free`
// are Deja's own in here (common/runtime/own_malloc.cc).
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
