// What needs device memory without saying so, in a replayed program whose rank shares devices
// (device_allocations.h). These are arrays, contexts, modules and libraries, and kernels that are
// loaded, or get their stacks, when they are launched. Any thread.
#include <algorithm>
#include <cstdint>

#include "preload/hooks/export.h"
#include "replayer/devices/device_allocations.h"
#include "replayer/devices/driver_hooks.h"

namespace deja::replayer {
namespace {

// About: how the driver lays an array out is its own affair.
uint64_t BytesOf(const CUDA_ARRAY3D_DESCRIPTOR_v2& array) {
  uint64_t texel = 1;
  if (array.Format == CU_AD_FORMAT_UNSIGNED_INT16 || array.Format == CU_AD_FORMAT_SIGNED_INT16 ||
      array.Format == CU_AD_FORMAT_HALF)
    texel = 2;
  if (array.Format == CU_AD_FORMAT_UNSIGNED_INT32 || array.Format == CU_AD_FORMAT_SIGNED_INT32 ||
      array.Format == CU_AD_FORMAT_FLOAT)
    texel = 4;
  const auto extent = [](size_t length) { return std::max<uint64_t>(length, 1); };
  return texel * array.NumChannels * extent(array.Width) * extent(array.Height) *
         extent(array.Depth);
}

template <typename Array, typename Attempt>
CUresult MakeArray(Array* array, uint64_t bytes, const Attempt& attempt) {
  const CUresult result = TryForMemory(bytes, kCurrentDevice, attempt);
  if (result == CUDA_SUCCESS && array != nullptr)
    NoteAllocation(reinterpret_cast<uintptr_t>(*array), bytes);
  return result;
}

template <typename Attempt>
CUresult MakeContext(CUdevice device, const Attempt& attempt) {
  const CUresult result = TryForMemory(0, device, attempt);
  if (Turns* turns = Turns::Get(); turns != nullptr) turns->Uses(device);
  return result;
}

}  // namespace
}  // namespace deja::replayer

using namespace deja::replayer;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v2* what) {
  static const auto real = Real<decltype(&cuArrayCreate_v2)>("cuArrayCreate_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const uint64_t bytes =
      what == nullptr ? 0
                      : BytesOf({what->Width, what->Height, 0, what->Format, what->NumChannels, 0});
  return MakeArray(array, bytes, [&] { return real(array, what); });
}

DEJA_EXPORT CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v2* what) {
  static const auto real = Real<decltype(&cuArray3DCreate_v2)>("cuArray3DCreate_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return MakeArray(array, what == nullptr ? 0 : BytesOf(*what), [&] { return real(array, what); });
}

DEJA_EXPORT CUresult cuArrayDestroy(CUarray array) {
  static const auto real = Real<decltype(&cuArrayDestroy)>("cuArrayDestroy");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GiveBack(reinterpret_cast<uintptr_t>(array), [&] { return real(array); });
}

DEJA_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* array,
                                            const CUDA_ARRAY3D_DESCRIPTOR_v2* what,
                                            unsigned int levels) {
  static const auto real = Real<decltype(&cuMipmappedArrayCreate)>("cuMipmappedArrayCreate");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return MakeArray(array, what == nullptr ? 0 : BytesOf(*what),
                   [&] { return real(array, what, levels); });
}

DEJA_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  static const auto real = Real<decltype(&cuMipmappedArrayDestroy)>("cuMipmappedArrayDestroy");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GiveBack(reinterpret_cast<uintptr_t>(array), [&] { return real(array); });
}

DEJA_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  static const auto real = Real<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return MakeContext(device, [&] { return real(context, device); });
}

DEJA_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  static const auto real = Real<decltype(&cuCtxCreate_v2)>("cuCtxCreate_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return MakeContext(device, [&] { return real(context, flags, device); });
}

DEJA_EXPORT CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count,
                                    unsigned int flags, CUdevice device) {
  static const auto real = Real<decltype(&cuCtxCreate_v3)>("cuCtxCreate_v3");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return MakeContext(device, [&] { return real(context, affinity, count, flags, device); });
}

DEJA_EXPORT CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params,
                                    unsigned int flags, CUdevice device) {
  static const auto real = Real<decltype(&cuCtxCreate_v4)>("cuCtxCreate_v4");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return MakeContext(device, [&] { return real(context, params, flags, device); });
}

#define DEJA_CU_HOOK(name, symbol, since, streams, params)
#define DEJA_CU_RETRY(name, symbol, since, streams, params, args)      \
  DEJA_EXPORT CUresult name params {                                   \
    static const auto real = Real<decltype(&(name))>(#name);           \
    if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;            \
    return TryForMemory(0, kCurrentDevice, [&] { return real args; }); \
  }
#include "replayer/devices/driver_hooks.def"
#undef DEJA_CU_RETRY
#undef DEJA_CU_HOOK
