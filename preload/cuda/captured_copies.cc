// What is captured into graphs: copies that nodes of the graph make at each launch.
#include <cstring>
#include <mutex>
#include <new>

#include "preload/cuda/conditional_bodies.h"
#include "preload/cuda/cuda_device.h"
#include "preload/process/guard.h"

namespace deja::preload {

// What the nodes of one captured copy share. Lives for good: so may the graph.
struct CudaDevice::CapturedCopy {
  CudaDevice* device = nullptr;
  Buffer* buffer = nullptr;
  uint64_t bytes = 0;
  UseBytes use = nullptr;
  MakeBytes make = nullptr;
  void* context = nullptr;
  LaunchUse when = LaunchUse::kLater;
  std::atomic<bool> complete{false};  // all its nodes are in the graph
  FutexMutex mutex;
  uint32_t running = 0;  // launches between the first node and the last
  bool overlapped = false;
  CUevent turn = nullptr;  // null: launches take no turns
};

CudaDevice::CapturedCopy* CudaDevice::Capture(const StreamScope& scope, CUstream stream,
                                              uint64_t bytes, uint64_t turn, DeviceAnswer& answer) {
  answer = DeviceAnswer::kFailed;
  if (scope.context() == nullptr) return nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = driver_.cuStreamIsCapturing(stream, &status);
  answer = DeviceAnswer::kCapturing;
  if (result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return nullptr;
  answer = DeviceAnswer::kInBody;
  if (ConditionalBodies::Get().Receive(stream)) return nullptr;
  answer = DeviceAnswer::kNoMemory;
  Buffer* buffer = pinned_.Take(bytes);
  auto* captured = buffer == nullptr ? nullptr : new (std::nothrow) CapturedCopy;
  if (captured == nullptr) {
    if (buffer != nullptr) BufferPool::GiveBack(buffer);
    return nullptr;
  }
  captured->device = this;
  captured->buffer = buffer;
  captured->bytes = bytes;
  captured->turn = BeginTurn(turn, scope.context(), stream);
  answer = DeviceAnswer::kTaken;
  // Not on a thread of the driver, which would be its parent.
  std::lock_guard hold(mutex_);
  if (!has_thread_) StartThread();
  return captured;
}

// Nodes of external events, as NCCL has them around its operations.
CUevent CudaDevice::BeginTurn(uint64_t turn, CUcontext context, CUstream stream) {
  if (driver_.cuEventRecordWithFlags == nullptr) return nullptr;
  std::lock_guard hold(mutex_);
  Turn* found = turns_;
  while (found != nullptr && (found->name != turn || found->context != context))
    found = found->next;
  if (found == nullptr) {
    CUevent end = nullptr;
    if (driver_.cuEventCreate(&end, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return nullptr;
    found = new (std::nothrow) Turn{turns_, turn, context, end};
    if (found == nullptr) return nullptr;
    turns_ = found;
  }
  const CUresult result = driver_.cuStreamWaitEvent(stream, found->end, CU_EVENT_WAIT_EXTERNAL);
  return result == CUDA_SUCCESS ? found->end : nullptr;
}

void CudaDevice::EndTurn(CUevent end, CUstream stream) const {
  if (end != nullptr) driver_.cuEventRecordWithFlags(end, stream, CU_EVENT_RECORD_EXTERNAL);
}

DeviceAnswer CudaDevice::ReadAtLaunches(const void* data, uint64_t bytes, uint64_t stream,
                                        uint64_t turn, UseBytes use, void* context,
                                        LaunchUse when) {
  const StreamScope scope(driver_, stream);
  DeviceAnswer answer;
  CapturedCopy* captured = Capture(scope, StreamOf(stream), bytes, turn, answer);
  if (captured == nullptr) return answer;
  captured->use = use;
  captured->context = context;
  captured->when = when;
  // Nodes of a copy that did not become whole stay in the graph, and do nothing.
  if (driver_.cuLaunchHostFunc(StreamOf(stream), &BeginRead, captured) != CUDA_SUCCESS ||
      driver_.cuMemcpyAsync(DeviceAddress(captured->buffer->memory), DeviceAddress(data), bytes,
                            StreamOf(stream)) != CUDA_SUCCESS ||
      driver_.cuLaunchHostFunc(StreamOf(stream), &EndRead, captured) != CUDA_SUCCESS)
    return DeviceAnswer::kCapturing;
  EndTurn(captured->turn, StreamOf(stream));
  captured->complete = true;
  return DeviceAnswer::kTaken;
}

DeviceAnswer CudaDevice::WriteAtLaunches(void* data, uint64_t bytes, uint64_t stream, uint64_t turn,
                                         MakeBytes make, void* context) {
  const StreamScope scope(driver_, stream);
  DeviceAnswer answer;
  CapturedCopy* captured = Capture(scope, StreamOf(stream), bytes, turn, answer);
  if (captured == nullptr) return answer;
  captured->make = make;
  captured->context = context;
  if (driver_.cuLaunchHostFunc(StreamOf(stream), &FillForWrite, captured) != CUDA_SUCCESS ||
      driver_.cuMemcpyAsync(DeviceAddress(data), DeviceAddress(captured->buffer->memory), bytes,
                            StreamOf(stream)) != CUDA_SUCCESS)
    return DeviceAnswer::kCapturing;
  EndTurn(captured->turn, StreamOf(stream));
  captured->complete = true;
  return DeviceAnswer::kTaken;
}

void CudaDevice::BeginRead(void* opaque) {
  const Guard guard;
  auto& captured = *static_cast<CapturedCopy*>(opaque);
  if (!captured.complete) return;
  captured.device->on_their_way_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard hold(captured.mutex);
  if (captured.running++ != 0) captured.overlapped = true;
}

void CudaDevice::EndRead(void* opaque) {
  const Guard guard;
  auto& captured = *static_cast<CapturedCopy*>(opaque);
  if (!captured.complete) return;
  DeviceAnswer answer = DeviceAnswer::kTaken;
  {
    std::lock_guard hold(captured.mutex);
    if (captured.overlapped) answer = DeviceAnswer::kOverlapped;
    if (--captured.running == 0) captured.overlapped = false;
  }
  captured.device->HandOnLaunch(captured, answer);
}

void CudaDevice::HandOnLaunch(const CapturedCopy& captured, DeviceAnswer answer) {
  const std::span<const std::byte> bytes{captured.buffer->memory, captured.bytes};
  Copy* copy = captured.when == LaunchUse::kLater ? TakeCopy(nullptr) : nullptr;
  if (copy == nullptr) {
    const bool whole = answer == DeviceAnswer::kTaken && captured.when == LaunchUse::kInNode;
    if (answer == DeviceAnswer::kTaken && !whole) answer = DeviceAnswer::kNoMemory;
    captured.use(answer, whole ? bytes : std::span<const std::byte>(), captured.context);
    on_their_way_.fetch_sub(1, std::memory_order_release);
    return;
  }
  copy->use = captured.use;
  copy->context = captured.context;
  copy->bytes = captured.bytes;
  // The next launch overwrites the bytes.
  if (answer == DeviceAnswer::kTaken) {
    copy->buffer = of_launches_.Take(captured.bytes);
    if (copy->buffer == nullptr)
      answer = DeviceAnswer::kNoMemory;
    else
      std::memcpy(copy->buffer->memory, bytes.data(), bytes.size());
  }
  copy->answer = answer;
  Queue(copy);
}

void CudaDevice::FillForWrite(void* opaque) {
  const Guard guard;
  auto& captured = *static_cast<CapturedCopy*>(opaque);
  if (captured.complete) captured.make({captured.buffer->memory, captured.bytes}, captured.context);
}

}  // namespace deja::preload
