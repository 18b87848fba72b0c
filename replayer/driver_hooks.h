// What the hooks on the CUDA driver have in common: the driver's own functions behind them, and
// which hook a name has. Any thread; no lock.
#ifndef DEJA_REPLAYER_DRIVER_HOOKS_H_
#define DEJA_REPLAYER_DRIVER_HOOKS_H_

#include <cstdint>

namespace deja::replayer {

// The driver's own function of the name under which libcuda.so.1 exports it; null: none is loaded.
void* RealDriver(const char* name);
template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(RealDriver(name));
}

// Hooks of device_memory.cc: by exported name, and by the name for cuGetProcAddress. Null: none.
void* MemoryHook(const char* name);
void* MemoryHookFor(const char* symbol, uint64_t flags);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_DRIVER_HOOKS_H_
