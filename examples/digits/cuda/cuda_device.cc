#include "cuda_device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace digits {
namespace {

constexpr uint32_t kThreads = 128;  // of a block
constexpr uint32_t kMostBlocks = 1024;

constexpr char kPtx[] =
#include "kernels.ptx.inc"
    ;

CUdeviceptr Address(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

// nccl.h and cuda.h may name a stream's type each in its own way.
CUstream ForCuda(Stream stream) {
  return reinterpret_cast<CUstream>(stream);
}

}  // namespace

CudaDevice::CudaDevice(int number) : driver_(TheCudaDriver()) {
  int devices = 0;
  CheckCuda(driver_.cuDeviceGetCount(&devices), "cuDeviceGetCount", "this machine");
  if (devices == 0) {
    std::fprintf(stderr, "digits_train: --device=cuda needs a GPU, and there is none\n");
    std::exit(1);
  }
  CUdevice device = 0;
  CheckCuda(driver_.cuDeviceGet(&device, number % devices), "cuDeviceGet", "the rank's device");
  CheckCuda(driver_.cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain",
            "the rank's device");
  Enter();
  CUmodule module = nullptr;
  CheckCuda(driver_.cuModuleLoadData(&module, kPtx), "cuModuleLoadData", "the kernels");
#define DIGITS_GET(name, Kernel)                                                                 \
  CheckCuda(driver_.cuModuleGetFunction(&functions_.name, module, #name), "cuModuleGetFunction", \
            #name);
  DIGITS_KERNELS(DIGITS_GET)
#undef DIGITS_GET
  stream_ = NewStream();
}

void CudaDevice::Enter() const {
  CheckCuda(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent", "the rank's device");
}

void* CudaDevice::Allocate(size_t bytes) {
  CUdeviceptr memory = 0;
  CheckCuda(driver_.cuMemAlloc_v2(&memory, (bytes + 3) / 4 * 4), "cuMemAlloc", "an array");
  auto* values = reinterpret_cast<float*>(static_cast<uintptr_t>(memory));
  Zero(values, (bytes + 3) / 4);
  return values;
}

void CudaDevice::Free(void* memory) {
  // What still works on it is on this stream, or was waited for by it.
  CheckCuda(driver_.cuStreamSynchronize(ForCuda(stream_)), "cuStreamSynchronize", "an array");
  CheckCuda(driver_.cuMemFree_v2(Address(memory)), "cuMemFree", "an array");
}

Stream CudaDevice::NewStream() {
  CUstream stream = nullptr;
  CheckCuda(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", "a stream");
  return reinterpret_cast<Stream>(stream);
}

Event CudaDevice::NewEvent() {
  CUevent event = nullptr;
  CheckCuda(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate", "an event");
  return event;
}

void CudaDevice::Record(Event event, Stream stream) {
  CheckCuda(driver_.cuEventRecord(event, ForCuda(stream)), "cuEventRecord", "a stream");
}

void CudaDevice::Wait(Stream stream, Event event) {
  CheckCuda(driver_.cuStreamWaitEvent(ForCuda(stream), event, 0), "cuStreamWaitEvent", "a stream");
}

// Memory that is not pinned is copied to a place of the driver's before the call returns.
void CudaDevice::CopyIn(void* to, const void* from, size_t bytes) {
  Copy(to, from, bytes);
}

void CudaDevice::CopyOut(void* to, const void* from, size_t bytes) {
  Copy(to, from, bytes);
  CheckCuda(driver_.cuStreamSynchronize(ForCuda(stream_)), "cuStreamSynchronize",
            "a copy to the host");
}

void CudaDevice::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  CheckCuda(driver_.cuMemcpyAsync(Address(to), Address(from), bytes, ForCuda(stream_)),
            "cuMemcpyAsync", "an array");
}

void CudaDevice::Loss(size_t batch, const float* logits, const int32_t* labels,
                      const float* weights, float scale, float* gradient, float* terms) {
  Run(kernels::Loss{logits, labels, weights, gradient, terms, scale, static_cast<uint32_t>(batch)});
}

void CudaDevice::Update(const AdamStep& step) {
  Run(kernels::Adam{step.gradients, step.mean, step.square, step.parameters, step.learning_rate,
                    step.mean_scale, step.square_scale, static_cast<uint32_t>(step.count)});
}

void CudaDevice::Zero(float* values, size_t count) {
  Run(kernels::Zero{values, static_cast<uint32_t>(count)});
}

void CudaDevice::Add(const float* from, float* to, size_t count) {
  Run(kernels::Add{from, to, static_cast<uint32_t>(count)});
}

void CudaDevice::FlipBits(float* value, uint32_t bits, Stream stream) {
  RunOn(stream, kernels::FlipBits{reinterpret_cast<uint32_t*>(value), bits, 1});
}

void CudaDevice::Launch(CUfunction function, const char* name, uint32_t count, const void* kernel,
                        Stream stream) {
  const uint32_t blocks = std::min((count + kThreads - 1) / kThreads, kMostBlocks);
  if (blocks == 0) return;
  void* parameters[] = {const_cast<void*>(kernel)};
  CheckCuda(driver_.cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, ForCuda(stream),
                                   parameters, nullptr),
            "cuLaunchKernel", name);
}

}  // namespace digits
