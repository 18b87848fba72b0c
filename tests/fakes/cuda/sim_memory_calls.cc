// The simulated driver's calls on linear memory: allocations, registration, copies.
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/fakes/cuda/sim_board.h"
#include "tests/fakes/cuda/sim_driver.h"
#include "tests/fakes/cuda/sim_gate.h"
#include "tests/fakes/cuda/sim_memory.h"
#include "tests/fakes/cuda/sim_stream.h"

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/cuda_sim.h"
#pragma GCC visibility pop

namespace {

using cusim::CheckUnsafeCall;
using cusim::Current;
using cusim::Enqueue;
using cusim::Memory;

const void* Pointer(CUdeviceptr address) {
  return reinterpret_cast<const void*>(static_cast<uintptr_t>(address));
}

CUresult AllocateAt(CUdeviceptr* address, Memory kind, size_t bytes) {
  if (CUresult result = CheckUnsafeCall(); result != CUDA_SUCCESS) return result;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  void* memory = cusim::Allocate(kind, bytes, Current()->device);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<uintptr_t>(memory);
  return CUDA_SUCCESS;
}

CUresult AllocateDevice(CUdeviceptr* address, size_t bytes) {
  const cusim::ApiCall call;
  return AllocateAt(address, Memory::kDevice, bytes);
}

CUresult FreeDevice(CUdeviceptr address) {
  const cusim::ApiCall call;
  if (CUresult result = cuStreamSynchronize(CU_STREAM_LEGACY); result != CUDA_SUCCESS)
    return result;
  return cusim::Free(const_cast<void*>(Pointer(address))) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return AllocateDevice(address, bytes);
}

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  const cusim::ApiCall call;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (cusim::DeviceLimit() == 0) return CUDA_ERROR_NOT_SUPPORTED;
  *free_bytes = cusim::FreeBytes(cusim::OnBoard(Current()->device));
  *total_bytes = cusim::DeviceLimit();
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int) {
  const cusim::ApiCall call;
  return AllocateAt(address, Memory::kManaged, bytes);
}

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned int) {
  const cusim::ApiCall call;
  CUdeviceptr address = 0;
  const CUresult result = AllocateAt(&address, Memory::kPinned, bytes);
  if (result == CUDA_SUCCESS) *memory = const_cast<void*>(Pointer(address));
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return FreeDevice(address);
}

CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned int) {
  const cusim::ApiCall call;
  if (CUresult result = CheckUnsafeCall(); result != CUDA_SUCCESS) return result;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return cusim::Register(memory, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned int) {
  const cusim::ApiCall call;
  if (!cusim::IsReady()) return CUDA_ERROR_NOT_INITIALIZED;
  *address = cusim::DeviceAddressOf(memory);
  return *address == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  const cusim::ApiCall call;
  if (!cusim::IsReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Memory kind = cusim::KindOf(Pointer(address));
  for (unsigned int i = 0; i < count; ++i) {
    unsigned int value = 0;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE && kind != Memory::kPageable)
      value = kind == Memory::kPinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED) value = kind == Memory::kManaged ? 1 : 0;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      value = static_cast<unsigned int>(cusim::DeviceOf(Pointer(address)));
    std::memcpy(data[i], &value, sizeof value);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  const cusim::ApiCall call;
  if (bytes == 0) return CUDA_SUCCESS;
  void* target = cusim::Backing(Pointer(to));
  const void* source = cusim::Backing(Pointer(from));
  // Memory that is not pinned is read before the call returns, and has been written by then.
  if (cusim::KindOf(Pointer(from)) == Memory::kPageable) {
    std::string staged(static_cast<const char*>(source), bytes);
    return Enqueue(
        stream, [target, staged] { std::memcpy(target, staged.data(), staged.size()); },
        CU_GRAPH_NODE_TYPE_MEMCPY);
  }
  const CUresult result = Enqueue(
      stream, [target, source, bytes] { std::memcpy(target, source, bytes); },
      CU_GRAPH_NODE_TYPE_MEMCPY);
  if (result != CUDA_SUCCESS || cusim::KindOf(Pointer(to)) != Memory::kPageable) return result;
  return cuStreamSynchronize(stream);
}

}  // extern "C"
