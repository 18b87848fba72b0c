#include "preload/cuda/device_digests.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <new>

#include "digest/digest_kernel.h"
#include "digest/digest_sums.h"
#include "preload/cuda/stream_scope.h"

namespace deja::preload {
namespace {

constexpr const char* kModule =
#include "digest/digest_kernel.ptx.inc"
    ;

struct Kernel {
  const char* name;
  uint32_t dtype;
};
#define DEJA_KERNEL(name, type, number) {#name, number},
constexpr Kernel kKernels[] = {DEJA_DIGEST_KERNELS(DEJA_KERNEL)};
#undef DEJA_KERNEL
constexpr uint32_t kKernelCount = sizeof kKernels / sizeof kKernels[0];
constexpr uint32_t kRaw = kKernelCount - 1;  // for whatever is no element

}  // namespace

// Results on their way to the host.
struct DeviceDigests::Scratch {
  Scratch* next = nullptr;
  CUdeviceptr memory = 0;
  CUevent summed = nullptr;
  CUevent copied = nullptr;
  CUstream user = nullptr;
  bool used = false;
};

// Never freed: the end of a context is not known.
class DeviceDigests::Context {
 public:
  Context* next = nullptr;
  CUcontext handle = nullptr;
  CUstream copies = nullptr;
  CUfunction kernels[kKernelCount] = {};
  std::atomic<bool> works{false};  // nothing of it is used before, or when the driver has refused
  FutexMutex mutex;
  Scratch scratches[kScratches];
  Scratch* free = nullptr;  // that was used longest ago first
};

struct DeviceDigests::Launch {
  CUfunction kernel;
  CUstream stream;
  CUdeviceptr data;
  uint64_t blocks;
  CUdeviceptr tail;
  uint64_t tail_bytes;
  std::byte* results;
  uint64_t result_bytes;
};

CUstream DeviceDigests::Copies(const Context& context) {
  return context.copies;
}

void DeviceDigests::Say(const char* what, CUresult result) {
  if (said_.exchange(true)) return;
  char line[256];
  const int size = snprintf(line, sizeof line,
                            "deja: digests of device buffers are made on the host: %s returned "
                            "error %d\n",
                            what, static_cast<int>(result));
  if (size > 0) syscall(SYS_write, STDERR_FILENO, line, std::min<size_t>(size, sizeof line - 1));
}

CUresult DeviceDigests::MakeScratches(Context& context) {
  constexpr uint64_t kAlignment = 256;
  const uint64_t bytes = (digest::MostResultsOfPiece() + kAlignment - 1) / kAlignment * kAlignment;
  CUdeviceptr memory = 0;
  CUresult result = driver_.cuMemAlloc_v2(&memory, bytes * kScratches);
  for (Scratch& scratch : context.scratches) {
    if (result != CUDA_SUCCESS) return result;
    scratch.memory = memory;
    memory += bytes;
    result = driver_.cuEventCreate(&scratch.summed, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
      result = driver_.cuEventCreate(&scratch.copied, CU_EVENT_DISABLE_TIMING);
    scratch.next = context.free;
    context.free = &scratch;
  }
  return result;
}

void DeviceDigests::Make(Context& context) {
  CUmodule module = nullptr;
  CUresult result = driver_.cuModuleLoadData(&module, kModule);
  if (result != CUDA_SUCCESS) return Say("cuModuleLoadData", result);
  for (uint32_t i = 0; i < kKernelCount; ++i) {
    result = driver_.cuModuleGetFunction(&context.kernels[i], module, kKernels[i].name);
    if (result != CUDA_SUCCESS) return Say("cuModuleGetFunction", result);
  }
  result = driver_.cuStreamCreate(&context.copies, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return Say("cuStreamCreate", result);
  result = MakeScratches(context);
  if (result != CUDA_SUCCESS) return Say("cuMemAlloc", result);
  context.works.store(true, std::memory_order_release);
}

DeviceDigests::Context* DeviceDigests::Of(CUcontext handle) {
  Context* context = nullptr;
  {
    std::lock_guard hold(mutex_);
    context = contexts_;
    while (context != nullptr && context->handle != handle) context = context->next;
    if (context != nullptr)
      return context->works.load(std::memory_order_acquire) ? context : nullptr;
    context = new (std::nothrow) Context;
    if (context == nullptr) return nullptr;
    context->handle = handle;
    context->next = contexts_;
    contexts_ = context;
  }
  // Not under the mutex: the driver may wait for work that another thread must enqueue elsewhere.
  Make(*context);
  return context->works.load(std::memory_order_relaxed) ? context : nullptr;
}

bool DeviceDigests::CanRead(const void* data) const {
  unsigned int type = 0;
  unsigned int managed = 0;
  int device = -1;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* answers[] = {&type, &managed, &device};
  CUdevice own = -2;
  // What is not there would be fetched; what another device has may be out of reach, and a kernel
  // that cannot read something takes the context with it.
  return driver_.cuPointerGetAttributes(3, asked, answers, DeviceAddress(data)) == CUDA_SUCCESS &&
         driver_.cuCtxGetDevice(&own) == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE &&
         managed == 0 && device == own;
}

DeviceDigests::Scratch* DeviceDigests::Take(Context& context, CUstream stream) {
  std::lock_guard hold(context.mutex);
  Scratch** own = nullptr;
  for (Scratch** at = &context.free; *at != nullptr; at = &(*at)->next) {
    Scratch* scratch = *at;
    if (!scratch->used || driver_.cuEventQuery(scratch->copied) == CUDA_SUCCESS) {
      scratch->used = false;
      *at = scratch->next;
      return scratch;
    }
    // The handle of the default stream of a thread means another stream to each.
    if (own == nullptr && scratch->user == stream && stream != CU_STREAM_PER_THREAD) own = at;
  }
  if (own == nullptr) return nullptr;
  Scratch* scratch = *own;
  *own = scratch->next;
  return scratch;
}

void DeviceDigests::GiveBack(Context& context, Scratch& scratch) {
  std::lock_guard hold(context.mutex);
  Scratch** end = &context.free;
  while (*end != nullptr) end = &(*end)->next;
  scratch.next = nullptr;
  *end = &scratch;
}

CUresult DeviceDigests::EnqueuePiece(const Context& context, Scratch& scratch,
                                     const Launch& launch) {
  CUdeviceptr data = launch.data;
  uint64_t blocks = launch.blocks;
  CUdeviceptr tail = launch.tail;
  uint64_t tail_bytes = launch.tail_bytes;
  void* params[] = {&data, &blocks, &scratch.memory, &tail, &tail_bytes};
  CUresult result = CUDA_SUCCESS;
  if (scratch.used) result = driver_.cuStreamWaitEvent(launch.stream, scratch.copied, 0);
  if (result == CUDA_SUCCESS)
    result = driver_.cuLaunchKernel(launch.kernel, digest::ThreadBlocksFor(blocks), 1, 1,
                                    digest::gpu::kThreads, 1, 1, 0, launch.stream, params, nullptr);
  if (result == CUDA_SUCCESS) result = driver_.cuEventRecord(scratch.summed, launch.stream);
  if (result == CUDA_SUCCESS) result = driver_.cuStreamWaitEvent(context.copies, scratch.summed, 0);
  if (result == CUDA_SUCCESS)
    result = driver_.cuMemcpyAsync(DeviceAddress(launch.results), scratch.memory,
                                   launch.result_bytes, context.copies);
  if (result == CUDA_SUCCESS) result = driver_.cuEventRecord(scratch.copied, context.copies);
  scratch.used = true;
  scratch.user = launch.stream;
  return result;
}

DeviceDigests::Enqueued DeviceDigests::Enqueue(Context& context, const void* data, uint64_t bytes,
                                               uint32_t dtype, CUstream stream,
                                               std::byte* results) {
  const digest::SummedTensor tensor(bytes);
  // Two places, so that one is filled while the other one is emptied.
  Scratch* places[2] = {Take(context, stream), nullptr};
  if (places[0] == nullptr) return Enqueued::kNone;
  if (tensor.pieces > 1) places[1] = Take(context, stream);
  CUresult result = CUDA_SUCCESS;
  for (uint64_t piece = 0; piece < tensor.pieces && result == CUDA_SUCCESS; ++piece) {
    const bool last = piece + 1 == tensor.pieces;
    const Launch launch{
        context.kernels[std::min(dtype, kRaw)],
        stream,
        DeviceAddress(data) + piece * digest::kPieceBlocks * digest::gpu::kBlockBytes,
        tensor.BlocksOf(piece),
        DeviceAddress(data) + tensor.tail_from,
        last ? tensor.tail_bytes : 0,
        results,
        tensor.ResultsOf(piece)};
    result = EnqueuePiece(context, *places[places[1] == nullptr ? 0 : piece % 2], launch);
    results += launch.result_bytes;
  }
  if (result != CUDA_SUCCESS) {
    // It would refuse again, and the places may still be in use.
    context.works = false;
    Say("the launch of a kernel", result);
    return Enqueued::kPartly;
  }
  for (Scratch* place : places)
    if (place != nullptr) GiveBack(context, *place);
  return Enqueued::kWhole;
}

}  // namespace deja::preload
