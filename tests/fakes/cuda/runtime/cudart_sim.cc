#pragma GCC visibility push(default)
#include "tests/fakes/cuda/runtime/cudart_sim.h"
#pragma GCC visibility pop

#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/fakes/cuda/runtime/cudart_calls.h"
#include "tests/fakes/cuda/runtime/cudart_kernels.h"

namespace {

// A kernel, and the table that the driver takes for a module.
struct Kernel {
  cusim_kernel table[2] = {};
  CUfunction function = nullptr;  // once it was launched
};

using cudart::Address;
using cudart::Do;
using cudart::Told;

std::mutex g_mutex;  // of the kernels and the contexts
std::map<const void*, Kernel> g_kernels;
std::vector<CUcontext> g_contexts;  // by device; null: not used yet

thread_local cudaError_t t_last = cudaSuccess;

CUresult Init() {
  static const CUresult result = [] {
    int devices = 0;
    CUresult initialised = cuInit(0);
    if (initialised == CUDA_SUCCESS) initialised = cuDeviceGetCount(&devices);
    g_contexts.resize(static_cast<size_t>(devices));
    return initialised;
  }();
  return result;
}

CUresult MakeCurrent(int device) {
  if (CUresult result = Init(); result != CUDA_SUCCESS) return result;
  if (device < 0 || static_cast<size_t>(device) >= g_contexts.size())
    return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard hold(g_mutex);
  CUcontext& context = g_contexts[static_cast<size_t>(device)];
  CUdevice handle = 0;
  if (context == nullptr) {
    if (CUresult result = cuDeviceGet(&handle, device); result != CUDA_SUCCESS) return result;
    if (CUresult result = cuDevicePrimaryCtxRetain(&context, handle); result != CUDA_SUCCESS)
      return result;
  }
  return cuCtxSetCurrent(context);
}

// Of what cudartsim_register has put there. Null: nothing.
CUresult OwnFunction(const void* host_function, CUfunction* function) {
  std::lock_guard hold(g_mutex);
  auto found = g_kernels.find(host_function);
  if (found == g_kernels.end()) return CUDA_SUCCESS;
  Kernel& kernel = found->second;
  CUmodule module = nullptr;
  if (kernel.function == nullptr) {
    if (CUresult result = cuModuleLoadData(&module, kernel.table); result != CUDA_SUCCESS)
      return result;
    if (CUresult result = cuModuleGetFunction(&kernel.function, module, kernel.table[0].name);
        result != CUDA_SUCCESS)
      return result;
  }
  *function = kernel.function;
  return CUDA_SUCCESS;
}

// What nvcc has compiled, if the processor can do it.
CUresult LaunchCompiled(const void* host_function, const dim3& grid, void** args,
                        cudaStream_t stream) {
  const char* name = cudart::KernelName(host_function);
  if (name == nullptr) return static_cast<CUresult>(cudaErrorInvalidDeviceFunction);
  std::function<void()> work = cudart::KernelWork(name, grid.y, args);
  if (work == nullptr) {
    std::fprintf(stderr, "cudart_sim: no GPU here, and no other way to run the kernel %s\n", name);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  // Not freed: a graph may launch it again.
  auto run = [](void* data) { (*static_cast<std::function<void()>*>(data))(); };
  return cuLaunchHostFunc(stream, run, new std::function<void()>(std::move(work)));
}

}  // namespace

cudaError_t cudart::Told(CUresult result) {
  const auto error = static_cast<cudaError_t>(result);
  if (error != cudaSuccess && error != cudaErrorNotReady) t_last = error;
  return error;
}

CUresult cudart::Ready() {
  if (CUresult result = Init(); result != CUDA_SUCCESS) return result;
  CUcontext current = nullptr;
  if (CUresult result = cuCtxGetCurrent(&current); result != CUDA_SUCCESS) return result;
  return current != nullptr ? CUDA_SUCCESS : MakeCurrent(0);
}

extern "C" {

void cudartsim_register(const void* host_function, const cusim_kernel* kernel) {
  std::lock_guard hold(g_mutex);
  g_kernels[host_function].table[0] = *kernel;
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t last = t_last;
  t_last = cudaSuccess;
  return last;
}

cudaError_t cudaPeekAtLastError(void) {
  return t_last;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (CUresult result = Init(); result != CUDA_SUCCESS) return Told(result);
  return Told(cuDeviceGetCount(count));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned int version, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result =
      cuGetProcAddress_v2(symbol, function, static_cast<int>(version), flags, &found);
  *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  // That it is not there is an answer.
  return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : Told(result);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  constexpr unsigned int kRuntime = 12000;
  return cudaGetDriverEntryPointByVersion(symbol, function, kRuntime, flags, status);
}

cudaError_t cudaGetDevice(int* device) {
  return Do([device] {
    CUcontext current = nullptr;
    const CUresult result = cuCtxGetCurrent(&current);
    std::lock_guard hold(g_mutex);
    for (size_t i = 0; i < g_contexts.size(); ++i)
      if (g_contexts[i] == current) *device = static_cast<int>(i);
    return result;
  });
}

cudaError_t cudaSetDevice(int device) {
  return Told(MakeCurrent(device));
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return Do([=] {
    CUdeviceptr address = 0;
    const CUresult result = cuMemAlloc_v2(&address, bytes);
    *memory = reinterpret_cast<void*>(static_cast<uintptr_t>(address));
    return result;
  });
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return Do([=] { return cuMemHostAlloc(memory, bytes, 0); });
}

cudaError_t cudaFree(void* memory) {
  return Do([=] { return cuMemFree_v2(Address(memory)); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return Do([=] { return cuMemcpyAsync(Address(to), Address(from), bytes, stream); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return Do([=] { return cuStreamCreate(stream, flags); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Do([=] { return cuStreamSynchronize(stream); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return Do([=] { return cuStreamWaitEvent(stream, event, flags); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return Do([=] { return cuEventCreate(event, flags); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Do([=] { return cuEventRecord(event, stream); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return Do([=] { return cuEventQuery(event); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  auto exchanged = static_cast<CUstreamCaptureMode>(*mode);
  const CUresult result = cuThreadExchangeStreamCaptureMode(&exchanged);
  *mode = static_cast<cudaStreamCaptureMode>(exchanged);
  return Told(result);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return Do(
      [=] { return cuStreamBeginCapture_v2(stream, static_cast<CUstreamCaptureMode>(mode)); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return Do([=] { return cuStreamEndCapture(stream, graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return Do([=] {
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = cuStreamIsCapturing(stream, &found);
    *status = static_cast<cudaStreamCaptureStatus>(found);
    return result;
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return Do([=] { return cuGraphInstantiateWithFlags(exec, graph, flags); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return Do([=] { return cuGraphLaunch(exec, stream); });
}

cudaError_t cudaLaunchKernel(const void* host_function, dim3 grid, dim3 block, void** args,
                             size_t shared_bytes, cudaStream_t stream) {
  return Do([=] {
    CUfunction function = nullptr;
    if (CUresult result = OwnFunction(host_function, &function); result != CUDA_SUCCESS)
      return result;
    if (function == nullptr) return LaunchCompiled(host_function, grid, args, stream);
    return cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                          static_cast<unsigned int>(shared_bytes), stream, args, nullptr);
  });
}

}  // extern "C"
