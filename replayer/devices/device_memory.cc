// Device memory by address that a replayed program asks for and gives back, where ranks share
// devices (device_allocations.h). Any thread.
#include <algorithm>
#include <cstdint>

#include "preload/hooks/export.h"
#include "replayer/devices/device_allocations.h"
#include "replayer/devices/driver_hooks.h"

namespace deja::replayer {
namespace {

// `attempt` gets `bytes` at *address, or refuses.
template <typename Name, typename Attempt>
CUresult GetMemory(const Name* name, uint64_t bytes, const Attempt& attempt) {
  const CUresult result = TryForMemory(bytes, kCurrentDevice, attempt);
  if (result == CUDA_SUCCESS && name != nullptr) NoteAllocation(*name, bytes);
  return result;
}

CUresult GetAsync(decltype(&cuMemAllocAsync) real, CUdeviceptr* address, size_t bytes,
                  CUstream stream) {
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GetMemory(address, bytes, [&] { return real(address, bytes, stream); });
}

CUresult GetFromPool(decltype(&cuMemAllocFromPoolAsync) real, CUdeviceptr* address, size_t bytes,
                     CUmemoryPool pool, CUstream stream) {
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GetMemory(address, bytes, [&] { return real(address, bytes, pool, stream); });
}

CUresult GiveBackAsync(decltype(&cuMemFreeAsync) real, CUdeviceptr address, CUstream stream) {
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GiveBack(address, [&] { return real(address, stream); });
}

}  // namespace
}  // namespace deja::replayer

using namespace deja::replayer;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  static const auto real = Real<decltype(&cuMemAlloc_v2)>("cuMemAlloc_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GetMemory(address, bytes, [&] { return real(address, bytes); });
}

DEJA_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width,
                                        size_t height, unsigned int element) {
  static const auto real = Real<decltype(&cuMemAllocPitch_v2)>("cuMemAllocPitch_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = TryForMemory(
      width * height, kCurrentDevice, [&] { return real(address, pitch, width, height, element); });
  if (result == CUDA_SUCCESS && address != nullptr && pitch != nullptr)
    NoteAllocation(*address, *pitch * height);
  return result;
}

DEJA_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  static const auto real = Real<decltype(&cuMemFree_v2)>("cuMemFree_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GiveBack(address, [&] { return real(address); });
}

DEJA_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  static const auto real = Real<decltype(&cuMemAllocAsync)>("cuMemAllocAsync");
  return GetAsync(real, address, bytes, stream);
}

DEJA_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  static const auto real = Real<decltype(&cuMemAllocAsync)>("cuMemAllocAsync_ptsz");
  return GetAsync(real, address, bytes, stream);
}

DEJA_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                             CUstream stream) {
  static const auto real = Real<decltype(&cuMemAllocFromPoolAsync)>("cuMemAllocFromPoolAsync");
  return GetFromPool(real, address, bytes, pool, stream);
}

DEJA_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes,
                                                  CUmemoryPool pool, CUstream stream) {
  static const auto real = Real<decltype(&cuMemAllocFromPoolAsync)>("cuMemAllocFromPoolAsync_ptsz");
  return GetFromPool(real, address, bytes, pool, stream);
}

DEJA_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  static const auto real = Real<decltype(&cuMemFreeAsync)>("cuMemFreeAsync");
  return GiveBackAsync(real, address, stream);
}

DEJA_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  static const auto real = Real<decltype(&cuMemFreeAsync)>("cuMemFreeAsync_ptsz");
  return GiveBackAsync(real, address, stream);
}

DEJA_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                 const CUmemAllocationProp* properties, unsigned long long flags) {
  static const auto real = Real<decltype(&cuMemCreate)>("cuMemCreate");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GetMemory(handle, bytes, [&] { return real(handle, bytes, properties, flags); });
}

DEJA_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  static const auto real = Real<decltype(&cuMemRelease)>("cuMemRelease");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GiveBack(handle, [&] { return real(handle); });
}

// A program that sizes what it asks for by what is free had the device for itself when it was
// recorded. What other ranks have there can be swapped out for it.
DEJA_EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  static const auto real = Real<decltype(&cuMemGetInfo_v2)>("cuMemGetInfo_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = real(free_bytes, total_bytes);
  Turns* turns = result == CUDA_SUCCESS ? Turns::Get() : nullptr;
  if (turns == nullptr || free_bytes == nullptr || total_bytes == nullptr) return result;
  deja::preload::Guard guard;
  *free_bytes = std::min<size_t>(*total_bytes, *free_bytes + turns->HeldByOthers(CurrentDevice()));
  return result;
}
