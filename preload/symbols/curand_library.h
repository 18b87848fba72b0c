// The cuRAND of the program: where the functions of its host API are.
//
// Deja links no cuRAND. The library is the one that the program is linked to, or has opened by
// itself; while a program has none there is nothing to hook. In a replay it is the same: nothing
// stands in for it. Any thread; no allocation; errno and dlerror are kept.
#ifndef DEJA_PRELOAD_SYMBOLS_CURAND_LIBRARY_H_
#define DEJA_PRELOAD_SYMBOLS_CURAND_LIBRARY_H_

namespace deja::preload {

// The real "curandGenerate", or null.
void* RealCurand(const char* name);
// The program has looked up a function of cuRAND's through `handle` by itself.
void RememberCurandHandle(void* handle, const char* name);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SYMBOLS_CURAND_LIBRARY_H_
