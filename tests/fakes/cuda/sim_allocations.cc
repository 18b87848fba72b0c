// Device memory by other calls than the plain one: in a stream's order, pitched, arrays, of a pool.
// Arrays are their memory, and nothing can be done with them.
#include <cstddef>
#include <cstdint>

#include "tests/fakes/cuda/sim_gate.h"

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/cuda_sim.h"
#pragma GCC visibility pop

namespace {

constexpr size_t kPitch = 512;

CUresult NewArray(void** array, size_t bytes) {
  const cusim::ApiCall call;
  CUdeviceptr memory = 0;
  const CUresult result = cuMemAlloc_v2(&memory, bytes);
  *array = reinterpret_cast<void*>(static_cast<uintptr_t>(memory));
  return result;
}

CUresult DestroyArray(void* array) {
  const cusim::ApiCall call;
  return cuMemFree_v2(reinterpret_cast<uintptr_t>(array));
}

size_t Texel(CUarray_format format, unsigned int channels) {
  return (format == CU_AD_FORMAT_FLOAT ? 4 : 1) * static_cast<size_t>(channels);
}

size_t Bytes(const CUDA_ARRAY3D_DESCRIPTOR_v2& array) {
  const auto one = [](size_t extent) { return extent == 0 ? 1 : extent; };
  return one(array.Width) * one(array.Height) * one(array.Depth) *
         Texel(array.Format, array.NumChannels);
}

}  // namespace

extern "C" {

// In the order of the calls, not of the stream's work: a stricter driver than it might be.
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) {
  return cuMemAlloc_v2(address, bytes);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) {
  return cuMemFree_v2(address);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  return cuMemAlloc_v2(handle, bytes);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return cuMemFree_v2(handle);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned int) {
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return cuMemAlloc_v2(address, *pitch * height);
}

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v2* what) {
  return NewArray(reinterpret_cast<void**>(array),
                  Bytes({what->Width, what->Height, 0, what->Format, what->NumChannels, 0}));
}

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v2* what) {
  return NewArray(reinterpret_cast<void**>(array), Bytes(*what));
}

CUresult cuArrayDestroy(CUarray array) {
  return DestroyArray(array);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR_v2* what,
                                unsigned int levels) {
  return NewArray(reinterpret_cast<void**>(array),
                  levels > 1 ? Bytes(*what) * 4 / 3 : Bytes(*what));
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return DestroyArray(array);
}

// A pool keeps nothing for itself.
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps*) {
  static int one_for_all;
  *pool = reinterpret_cast<CUmemoryPool>(&one_for_all);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : cuMemAllocAsync(address, bytes, stream);
}

}  // extern "C"
