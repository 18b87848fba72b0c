// Devices of the CUDA runtime stand-in, its versions and the texts of its errors.
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "tests/fakes/cuda/runtime/cudart_calls.h"

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/runtime/cudart_torch.h"
#pragma GCC visibility pop

namespace {

using cudart::Do;
using cudart::Told;

// As in NVIDIA's header of CUDA 12.8.
static_assert(sizeof(cudaDeviceProp) == 1032 && sizeof(cudaFuncAttributes) == 144 &&
              sizeof(cudaLaunchConfig_t) == 56 && sizeof(cudaPointerAttributes) == 24);
static_assert(offsetof(cudaDeviceProp, major) == 360 &&
              offsetof(cudaDeviceProp, multiProcessorCount) == 388 &&
              offsetof(cudaDeviceProp, pciBusID) == 584 &&
              offsetof(cudaDeviceProp, maxThreadsPerMultiProcessor) == 624 &&
              offsetof(cudaDeviceProp, sharedMemPerBlockOptin) == 696);

constexpr int kVersion = 12080;
constexpr size_t kMemory = size_t{1} << 30;  // sim_memory.cc has that much

enum { cudaErrorNotSupported = 801 };
// Of cudaDeviceAttr.
enum { kMaxThreadsPerBlock = 1, kMultiProcessorCount = 16, kMajor = 75 };

CUresult CheckDevice(int device) {
  int count = 0;
  if (CUresult result = cuDeviceGetCount(&count); result != CUDA_SUCCESS) return result;
  return device >= 0 && device < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

struct Text {
  int error;
  const char* name;
  const char* text;
};
constexpr Text kTexts[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {600, "cudaErrorNotReady", "device not ready"},
    {801, "cudaErrorNotSupported", "operation not supported"},
};

const Text& TextOf(int error) {
  static const Text other{-1, "cudaErrorUnknown", "unknown error"};
  for (const Text& text : kTexts)
    if (text.error == error) return text;
  return other;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  return TextOf(error).name;
}

const char* cudaGetErrorString(cudaError_t error) {
  return TextOf(error).text;
}

cudaError_t cudaDriverGetVersion(int* version) {
  return Told(cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* properties, int device) {
  if (CUresult result = CheckDevice(device); result != CUDA_SUCCESS) return Told(result);
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "simulated device %d", device);
  properties->uuid[15] = static_cast<char>(device + 1);
  properties->totalGlobalMem = kMemory;
  properties->sharedMemPerBlock = properties->sharedMemPerBlockOptin = 48 << 10;
  properties->sharedMemPerMultiprocessor = 64 << 10;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  for (int& most : properties->maxThreadsDim) most = 1024;
  for (int& most : properties->maxGridSize) most = 65535;
  properties->maxGridSize[0] = 2147483647;
  properties->clockRate = properties->memoryClockRate = 1000000;
  properties->major = 8;
  properties->textureAlignment = 512;
  properties->multiProcessorCount = 2;
  properties->canMapHostMemory = properties->unifiedAddressing = 1;
  properties->pciBusID = device + 1;
  properties->memoryBusWidth = 64;
  properties->l2CacheSize = 1 << 20;
  properties->maxThreadsPerMultiProcessor = 2048;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, int attribute, int device) {
  cudaDeviceProp properties;
  if (cudaError_t result = cudaGetDeviceProperties_v2(&properties, device); result != cudaSuccess)
    return result;
  *value = attribute == kMaxThreadsPerBlock    ? properties.maxThreadsPerBlock
           : attribute == kMultiProcessorCount ? properties.multiProcessorCount
           : attribute == kMajor               ? properties.major
                                               : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned int) {
  return Told(static_cast<CUresult>(cudaErrorNotSupported));
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  std::snprintf(id, static_cast<size_t>(size), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  return Do([] { return cuCtxSynchronize(); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}

}  // extern "C"
