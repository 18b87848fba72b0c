// Hooks on the CUDA driver's graphs. Any thread; nothing is allocated.
#ifndef DEJA_PRELOAD_HOOKS_CUDA_GRAPH_HOOKS_H_
#define DEJA_PRELOAD_HOOKS_CUDA_GRAPH_HOOKS_H_

#include <cstdint>

namespace deja::preload {

// The function to hand out in the place of the driver's own `found`, which dlsym finds as `name`.
// Null: the driver's own, or `found` is not the driver's.
void* GraphHook(const char* name, const void* found);
// The same for what cuGetProcAddress finds.
void* GraphHookForSymbol(const char* symbol, int version, uint64_t flags);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_CUDA_GRAPH_HOOKS_H_
