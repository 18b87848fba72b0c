// The simulated driver's functions that the runtime needs beyond what Deja calls. These are states
// of streams and events, waiting for them, fills, and the end of what was made.
#pragma GCC visibility push(default)
#include "tests/fakes/cuda/cuda_sim.h"
#pragma GCC visibility pop

#include <cstdint>
#include <cstring>

#include "tests/fakes/cuda/sim_driver.h"
#include "tests/fakes/cuda/sim_gate.h"
#include "tests/fakes/cuda/sim_memory.h"
#include "tests/fakes/cuda/sim_stream.h"

namespace {

cusim::MarkPtr MarkOf(CUevent event) {
  std::lock_guard hold(event->mutex);
  return event->mark;
}

}  // namespace

extern "C" {

CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  constexpr int kMulticastSupported = 132;
  *value = attribute == kMulticastSupported ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  *flags = 0;
  *active = cusim::PrimaryOf(device) != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
  const cusim::ApiCall call;
  CUcontext context = nullptr;
  if (CUresult result = cuCtxGetCurrent(&context); result != CUDA_SUCCESS) return result;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  // Refused while something is captured, as a stream is.
  if (CUresult result = cuStreamSynchronize(CU_STREAM_LEGACY); result != CUDA_SUCCESS)
    return result;
  std::vector<CUstream> streams;
  {
    std::lock_guard hold(context->mutex);
    streams = context->streams;
  }
  for (CUstream stream : streams)
    if (cusim::MarkPtr tail = stream->Tail(); tail != nullptr) tail->Wait();
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
  const cusim::ApiCall call;
  CUstream stream = nullptr;
  if (CUresult result = cusim::StreamOf(handle, &stream); result != CUDA_SUCCESS) return result;
  cusim::MarkPtr tail = stream->Tail();
  return tail == nullptr || tail->reached() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  const cusim::ApiCall call;
  if (cusim::MarkPtr mark = MarkOf(event); mark != nullptr) mark->Wait();
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  const cusim::ApiCall call;
  cusim::MarkPtr from = MarkOf(start);
  cusim::MarkPtr to = MarkOf(end);
  if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!from->reached() || !to->reached()) return CUDA_ERROR_NOT_READY;
  if (from->time_ns() == 0 || to->time_ns() == 0) return CUDA_ERROR_INVALID_HANDLE;
  const auto ns = static_cast<int64_t>(to->time_ns() - from->time_ns());
  *ms = static_cast<float>(ns) / 1e6f;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent) {
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream) {
  const cusim::ApiCall call;
  void* memory = cusim::Backing(reinterpret_cast<void*>(static_cast<uintptr_t>(address)));
  return cusim::Enqueue(stream, [=] { std::memset(memory, value, bytes); });
}

CUresult cuMemHostUnregister(void* memory) {
  const cusim::ApiCall call;
  return cusim::Free(memory) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// What streams still read stays mapped.
CUresult cuMemFreeHost(void* memory) {
  return cuMemHostUnregister(memory);
}

}  // extern "C"
