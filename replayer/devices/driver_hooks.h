// What the hooks on the CUDA driver have in common: the driver's own functions below them, and
// which hook a name has (driver_hooks.def). Any thread; no lock.
#ifndef DEJA_REPLAYER_DEVICES_DRIVER_HOOKS_H_
#define DEJA_REPLAYER_DEVICES_DRIVER_HOOKS_H_

#include <cstdint>

#include "include/compat/cuda.h"

namespace deja::replayer {

// The driver's own function of the name under which libcuda.so.1 exports it; null: none is loaded,
// or it is too old for that.
void* RealDriver(const char* name);
template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(RealDriver(name));
}

// The replay uses other devices than the recorded job had (device_map.cc).
bool MapsDevices();

// What the program gets in the place of what cuGetProcAddress has found. Null: that.
void* HookForSymbol(const char* symbol, int version, uint64_t flags);

}  // namespace deja::replayer

using CuFlags = unsigned long long;  // NOLINT: cuuint64_t

extern "C" {
#define DEJA_CU_HOOK(name, symbol, since, streams, params) CUresult name params;
#define DEJA_CU_RETRY(name, symbol, since, streams, params, args) CUresult name params;
#include "replayer/devices/driver_hooks.def"
#undef DEJA_CU_RETRY
#undef DEJA_CU_HOOK
}

#endif  // DEJA_REPLAYER_DEVICES_DRIVER_HOOKS_H_
