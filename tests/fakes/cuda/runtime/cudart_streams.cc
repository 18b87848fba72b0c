// Streams, events and launches of the CUDA runtime stand-in, beyond what cudart_sim.cc has.
#include <vector>

#include "tests/fakes/cuda/runtime/cudart_calls.h"

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/runtime/cudart_torch.h"
#pragma GCC visibility pop

using cudart::Do;

namespace {

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  void* stream;
};
// What <<< >>> has set up, for the launch that follows.
thread_local std::vector<Configuration> t_configurations;

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return Do([=] { return cuStreamDestroy_v2(stream); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  *priority = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return Do([=] { return cuStreamQuery(stream); });
}

// Which capture it is: the driver has no numbers for them, so only that there is one.
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const void** dependencies, size_t* count) {
  const cudaError_t result = cudaStreamIsCapturing(stream, status);
  if (result == cudaSuccess && *status != cudaStreamCaptureStatusNone) {
    if (id != nullptr) *id = 1;
    if (graph != nullptr) *graph = nullptr;
    if (dependencies != nullptr) *dependencies = nullptr;
    if (count != nullptr) *count = 0;
  }
  return result;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, CUhostFn function, void* data) {
  return Do([=] { return cuLaunchHostFunc(stream, function, data); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return Do([=] { return cuEventDestroy_v2(event); });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return Do([=] { return cuEventElapsedTime(ms, start, end); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Do([=] { return cuEventSynchronize(event); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return Do([=] { return cuGraphDestroy(graph); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return Do([=] { return cuGraphExecDestroy(exec); });
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
  t_configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  const Configuration last = t_configurations.back();
  t_configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<void**>(stream) = last.stream;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** args) {
  return cudaLaunchKernel(function, config->grid, config->block, args, config->shared_bytes,
                          config->stream);
}

}  // extern "C"
