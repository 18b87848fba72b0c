// Fewer devices than the recorded job had: `deja replay --devices N`.
//
// The program asks for the device that it had (cuDeviceGet(3), which is what cudaSetDevice(3) comes
// to) and is given one of those that are there; it sees as many as it had. Only these two questions
// are answered otherwise, wherever the program has their functions from: linked, by dlsym, or by
// cuGetProcAddress, as the CUDA runtime does. (So are those that allocate memory:
// device_memory.cc.) Everything behind them, handles of devices included, is the driver's own. Any
// thread; no lock.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "include/compat/cuda.h"
#include "preload/guard.h"
#include "preload/hooks/export.h"
#include "preload/real_symbols.h"
#include "replayer/driver_hooks.h"

namespace deja::replayer {
namespace {

struct DeviceMap {
  int here = 0;  // devices to use; 0: those that are asked for
  int seen = 0;  // devices that the recorded job had
};

const DeviceMap& TheMap() {
  static const DeviceMap map = [] {
    DeviceMap read;
    const char* text = std::getenv("DEJA_DEVICES");
    if (text == nullptr || std::sscanf(text, "%d/%d", &read.here, &read.seen) != 2 ||
        read.here <= 0)
      return DeviceMap();
    return read;
  }();
  return map;
}

using DeviceGet = CUresult (*)(CUdevice*, int);
using DeviceGetCount = CUresult (*)(int*);
using GetProcAddress = CUresult (*)(const char*, void**, int, uint64_t);
using GetProcAddress2 = CUresult (*)(const char*, void**, int, uint64_t, int*);

}  // namespace

void* RealDriver(const char* name) {
  preload::Guard guard;
  void* found = preload::RealNext(name);
  if (found == nullptr)
    if (void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY))
      found = preload::RealDlsym(library, name);
  return found;
}

}  // namespace deja::replayer

using deja::replayer::Real;
using deja::replayer::TheMap;

DEJA_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  static const auto real = Real<deja::replayer::DeviceGet>("cuDeviceGet");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const auto& map = TheMap();
  return real(device,
              map.here != 0 && ordinal >= 0 && ordinal < map.seen ? ordinal % map.here : ordinal);
}

DEJA_EXPORT CUresult cuDeviceGetCount(int* count) {
  static const auto real = Real<deja::replayer::DeviceGetCount>("cuDeviceGetCount");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = real(count);
  const auto& map = TheMap();
  // None is none.
  if (result == CUDA_SUCCESS && map.here != 0 && *count > 0) *count = std::max(*count, map.seen);
  return result;
}

namespace {

void Replace(const char* symbol, void** function, int version, uint64_t flags);

}  // namespace

DEJA_EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                      uint64_t flags) {
  static const auto real = Real<deja::replayer::GetProcAddress>("cuGetProcAddress");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = real(symbol, function, version, flags);
  if (result == CUDA_SUCCESS) Replace(symbol, function, version, flags);
  return result;
}

DEJA_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                         uint64_t flags, int* status) {
  static const auto real = Real<deja::replayer::GetProcAddress2>("cuGetProcAddress_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = real(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS) Replace(symbol, function, version, flags);
  return result;
}

namespace deja::preload {

// What dlsym gives the program for a function of the driver; null: the driver's own.
void* DriverHook(const char* name) {
  if (name == nullptr || std::strncmp(name, "cu", 2) != 0 || TheMap().here == 0) return nullptr;
  if (std::strcmp(name, "cuDeviceGet") == 0) return reinterpret_cast<void*>(&cuDeviceGet);
  if (std::strcmp(name, "cuDeviceGetCount") == 0) return reinterpret_cast<void*>(&cuDeviceGetCount);
  if (std::strcmp(name, "cuGetProcAddress") == 0) return reinterpret_cast<void*>(&cuGetProcAddress);
  if (std::strcmp(name, "cuGetProcAddress_v2") == 0)
    return reinterpret_cast<void*>(&cuGetProcAddress_v2);
  return replayer::MemoryHook(name);
}

}  // namespace deja::preload

namespace {

// By cuGetProcAddress one name is two functions, which differ in their parameters.
void Replace(const char* symbol, void** function, int version, uint64_t flags) {
  constexpr int kSecondSince = 12000;
  if (function == nullptr || *function == nullptr) return;
  const bool second =
      symbol != nullptr && version >= kSecondSince && std::strcmp(symbol, "cuGetProcAddress") == 0;
  void* hook = deja::preload::DriverHook(second ? "cuGetProcAddress_v2" : symbol);
  if (symbol != nullptr)
    if (void* memory = deja::replayer::MemoryHookFor(symbol, flags)) hook = memory;
  if (hook != nullptr) *function = hook;
}

}  // namespace
