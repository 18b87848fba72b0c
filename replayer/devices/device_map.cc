// Fewer devices than the recorded job had: `deja replay --devices N`.
//
// The program asks for the device that it had (cuDeviceGet(3), which is what cudaSetDevice(3) comes
// to) and is given one of those that are there; it sees as many as it had. Only these two questions
// are answered otherwise, wherever the program has their functions from: linked, by dlsym, or by
// cuGetProcAddress, as the CUDA runtime does. (So are those that need memory: device_memory.cc,
// device_objects.cc.) Everything below them, handles of devices included, is the driver's own. Any
// thread; no lock.
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "common/env_vars.h"
#include "preload/hooks/cuda/graph_hooks.h"
#include "preload/hooks/export.h"
#include "preload/process/own_variables.h"
#include "replayer/devices/driver_hooks.h"

namespace deja::replayer {
namespace {

struct DeviceMap {
  int here = 0;  // devices to use; 0: those that are asked for
  int seen = 0;  // devices that the recorded job had
};

const DeviceMap& TheMap() {
  static const DeviceMap map = [] {
    DeviceMap read;
    const char* text = preload::OwnVariable(env::kDevices);
    if (text == nullptr || std::sscanf(text, "%d/%d", &read.here, &read.seen) != 2 ||
        read.here <= 0)
      return DeviceMap();
    return read;
  }();
  return map;
}

void Replace(const char* symbol, void** function, int version, uint64_t flags) {
  if (function == nullptr || *function == nullptr) return;
  void* hook = HookForSymbol(symbol, version, flags);
  if (hook == nullptr) hook = preload::GraphHookForSymbol(symbol, version, flags);
  if (hook != nullptr) *function = hook;
}

}  // namespace

bool MapsDevices() {
  return TheMap().here != 0;
}

}  // namespace deja::replayer

using deja::replayer::Real;
using deja::replayer::Replace;
using deja::replayer::TheMap;

DEJA_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  static const auto real = Real<decltype(&cuDeviceGet)>("cuDeviceGet");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const auto& map = TheMap();
  return real(device,
              map.here != 0 && ordinal >= 0 && ordinal < map.seen ? ordinal % map.here : ordinal);
}

DEJA_EXPORT CUresult cuDeviceGetCount(int* count) {
  static const auto real = Real<decltype(&cuDeviceGetCount)>("cuDeviceGetCount");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = real(count);
  const auto& map = TheMap();
  // None is none.
  if (result == CUDA_SUCCESS && map.here != 0 && *count > 0) *count = std::max(*count, map.seen);
  return result;
}

DEJA_EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                      CuFlags flags) {
  static const auto real = Real<decltype(&cuGetProcAddress)>("cuGetProcAddress");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = real(symbol, function, version, flags);
  if (result == CUDA_SUCCESS) Replace(symbol, function, version, flags);
  return result;
}

DEJA_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                         CuFlags flags, CUdriverProcAddressQueryResult* status) {
  static const auto real = Real<decltype(&cuGetProcAddress_v2)>("cuGetProcAddress_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = real(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS) Replace(symbol, function, version, flags);
  return result;
}
