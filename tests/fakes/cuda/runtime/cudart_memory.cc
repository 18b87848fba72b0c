// Memory and copies of the CUDA runtime stand-in, beyond what cudart_sim.cc has.
#include <cstring>

#include "tests/fakes/cuda/runtime/cudart_calls.h"

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/runtime/cudart_torch.h"
#pragma GCC visibility pop

using cudart::Address;
using cudart::Do;

extern "C" {

// Without CUDA_SIM_MEMORY the driver counts nothing: then it is what sim_memory.cc begins with.
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return Do([=] {
    const CUresult result = cuMemGetInfo_v2(free_bytes, total_bytes);
    if (result != CUDA_ERROR_NOT_SUPPORTED) return result;
    *free_bytes = *total_bytes = size_t{1} << 30;
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned int flags) {
  return Do([=] { return cuMemHostAlloc(memory, bytes, flags); });
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned int flags) {
  return Do([=] { return cuMemHostRegister_v2(memory, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* memory) {
  return Do([=] { return cuMemHostUnregister(memory); });
}

cudaError_t cudaFreeHost(void* memory) {
  return Do([=] { return memory == nullptr ? CUDA_SUCCESS : cuMemFreeHost(memory); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  return Do([=] {
    unsigned int type = 0;
    unsigned int managed = 0;
    unsigned int device = 0;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* answers[] = {&type, &managed, &device};
    const CUresult result = cuPointerGetAttributes(3, asked, answers, Address(memory));
    std::memset(attributes, 0, sizeof *attributes);
    attributes->type = static_cast<int>(managed != 0 ? 3 : type);
    attributes->device = static_cast<int>(device);
    void* address = const_cast<void*>(memory);
    if (type != 0) attributes->devicePointer = address;
    if (type == CU_MEMORYTYPE_HOST || managed != 0) attributes->hostPointer = address;
    return result;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t result = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  return result == cudaSuccess ? cudaStreamSynchronize(nullptr) : result;
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  for (size_t row = 0; row < height; ++row)
    if (cudaError_t result =
            cudaMemcpyAsync(static_cast<char*>(to) + row * to_pitch,
                            static_cast<const char*>(from) + row * from_pitch, width, kind, stream);
        result != cudaSuccess)
      return result;
  return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return Do([=] {
    return cuMemsetD8Async(Address(memory), static_cast<unsigned char>(value), bytes, stream);
  });
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  const cudaError_t result = cudaMemsetAsync(memory, value, bytes, nullptr);
  return result == cudaSuccess ? cudaStreamSynchronize(nullptr) : result;
}

}  // extern "C"
