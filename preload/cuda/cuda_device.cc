#include "preload/cuda/cuda_device.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "digest/digest_sums.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"

namespace deja::preload {
namespace {

constexpr uint32_t kShortestPauseUs = 20;
constexpr uint32_t kLongestPauseUs = 1000;

}  // namespace

MemoryKind CudaDevice::KindOf(const void* data) const {
  unsigned int type = 0;
  unsigned int managed = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void* answers[] = {&type, &managed};
  // Fails before the program has initialised the driver: it has no other memory then.
  if (driver_.cuPointerGetAttributes(2, asked, answers, DeviceAddress(data)) != CUDA_SUCCESS)
    return MemoryKind::kHost;
  if (managed != 0) return MemoryKind::kManaged;
  if (type == CU_MEMORYTYPE_HOST) return MemoryKind::kPinned;
  return type == 0 ? MemoryKind::kHost : MemoryKind::kDevice;
}

DeviceAnswer CudaDevice::StateOf(const StreamScope& scope, CUstream stream) const {
  if (scope.context() == nullptr) return DeviceAnswer::kFailed;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = driver_.cuStreamIsCapturing(stream, &status);
  // The legacy stream cannot even be asked while one that it waits for is captured.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || status != CU_STREAM_CAPTURE_STATUS_NONE)
    return DeviceAnswer::kCapturing;
  return result == CUDA_SUCCESS ? DeviceAnswer::kTaken : DeviceAnswer::kFailed;
}

bool CudaDevice::IsCaptured(uint64_t stream) const {
  const StreamScope scope(driver_, stream);
  return StateOf(scope, StreamOf(stream)) == DeviceAnswer::kCapturing;
}

CudaDevice::Copy* CudaDevice::TakeFor(const StreamScope& scope, CUstream stream, uint64_t bytes,
                                      DeviceAnswer& answer) {
  answer = StateOf(scope, stream);
  if (answer != DeviceAnswer::kTaken) return nullptr;
  Copy* copy = Take(scope.context(), bytes);
  if (copy == nullptr) answer = DeviceAnswer::kNoMemory;
  return copy;
}

DeviceAnswer CudaDevice::Read(const void* data, uint64_t bytes, uint64_t stream, UseBytes use,
                              void* context) {
  const StreamScope scope(driver_, stream);
  DeviceAnswer answer;
  Copy* copy = TakeFor(scope, StreamOf(stream), bytes, answer);
  if (copy == nullptr) return answer;
  copy->use = use;
  copy->context = context;
  return Bring(copy, data, StreamOf(stream));
}

DeviceAnswer CudaDevice::Notify(uint64_t stream, UseBytes use, void* context) {
  const StreamScope scope(driver_, stream);
  const DeviceAnswer answer = StateOf(scope, StreamOf(stream));
  if (answer != DeviceAnswer::kTaken) return answer;
  Copy* copy = TakeCopy(scope.context());
  if (copy == nullptr) return DeviceAnswer::kNoMemory;
  copy->bytes = 0;
  copy->answer = DeviceAnswer::kTaken;
  copy->use = use;
  copy->context = context;
  return Send(copy, StreamOf(stream)) ? DeviceAnswer::kTaken : DeviceAnswer::kFailed;
}

DeviceAnswer CudaDevice::Bring(Copy* copy, const void* data, CUstream stream) {
  if (driver_.cuMemcpyAsync(DeviceAddress(copy->buffer->memory), DeviceAddress(data), copy->bytes,
                            stream) != CUDA_SUCCESS) {
    GiveBack(copy);
    return DeviceAnswer::kFailed;
  }
  return Send(copy, stream) ? DeviceAnswer::kTaken : DeviceAnswer::kFailed;
}

DeviceAnswer CudaDevice::Digest(const void* data, uint64_t bytes, uint32_t dtype, uint64_t stream,
                                UseDigest use, void* context) {
  const StreamScope scope(driver_, stream);
  const CUstream on = StreamOf(stream);
  const TensorUse wanted{use, context, dtype};
  DeviceAnswer answer = StateOf(scope, on);
  if (answer != DeviceAnswer::kTaken) return answer;
  if (DigestThere(scope, data, bytes, wanted, on)) return DeviceAnswer::kTaken;
  Copy* copy = TakeFor(scope, on, bytes, answer);
  if (copy == nullptr) return answer;
  copy->use_digest = use;
  copy->dtype = dtype;
  copy->tensor_bytes = 0;
  copy->context = context;
  return Bring(copy, data, on);
}

bool CudaDevice::DigestThere(const StreamScope& scope, const void* data, uint64_t bytes,
                             const TensorUse& wanted, CUstream stream) {
  if (!digests_on_ || bytes < DeviceDigests::kSmallest || !digests_.CanRead(data)) return false;
  DeviceDigests::Context* there = digests_.Of(scope.context());
  Copy* copy =
      there == nullptr ? nullptr : Take(scope.context(), digest::SummedTensor(bytes).Results());
  if (copy == nullptr) return false;
  copy->use_digest = wanted.use;
  copy->dtype = wanted.dtype;
  copy->tensor_bytes = bytes;
  copy->context = wanted.context;
  const DeviceDigests::Enqueued enqueued =
      digests_.Enqueue(*there, data, bytes, wanted.dtype, stream, copy->buffer->memory);
  if (enqueued == DeviceDigests::Enqueued::kWhole) return Send(copy, DeviceDigests::Copies(*there));
  // What may still be written to is given up.
  if (enqueued == DeviceDigests::Enqueued::kPartly) copy->buffer = nullptr;
  GiveBack(copy);
  return false;
}

void CudaDevice::PrepareDigests() {
  const StreamScope scope(driver_, uint64_t{0});
  if (digests_on_ && scope.context() != nullptr) (void)digests_.Of(scope.context());
}

DeviceAnswer CudaDevice::Write(void* data, uint64_t bytes, uint64_t stream, MakeBytes make,
                               void* context) {
  const StreamScope scope(driver_, stream);
  DeviceAnswer answer;
  Copy* copy = TakeFor(scope, StreamOf(stream), bytes, answer);
  if (copy == nullptr) return answer;
  if (!make({copy->buffer->memory, bytes}, context) ||
      driver_.cuMemcpyAsync(DeviceAddress(data), DeviceAddress(copy->buffer->memory), bytes,
                            StreamOf(stream)) != CUDA_SUCCESS) {
    GiveBack(copy);
    return DeviceAnswer::kFailed;
  }
  return Send(copy, StreamOf(stream)) ? DeviceAnswer::kTaken : DeviceAnswer::kFailed;
}

CudaDevice::Copy* CudaDevice::TakeCopy(CUcontext context) {
  Copy* copy = nullptr;
  {
    std::lock_guard hold(mutex_);
    Copy** at = &free_copies_;
    while (*at != nullptr && (*at)->owner != context) at = &(*at)->next;
    copy = *at;
    if (copy != nullptr) *at = copy->next;
  }
  if (copy == nullptr) copy = new (std::nothrow) Copy;
  if (copy == nullptr || context == nullptr || copy->done != nullptr) return copy;
  copy->owner = context;
  if (driver_.cuEventCreate(&copy->done, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) return copy;
  delete copy;
  return nullptr;
}

CudaDevice::Copy* CudaDevice::Take(CUcontext context, uint64_t bytes) {
  Buffer* buffer = pinned_.Take(bytes);
  if (buffer == nullptr) return nullptr;
  Copy* copy = TakeCopy(context);
  if (copy == nullptr) {
    BufferPool::GiveBack(buffer);
    return nullptr;
  }
  copy->buffer = buffer;
  copy->bytes = bytes;
  copy->answer = DeviceAnswer::kTaken;
  return copy;
}

void CudaDevice::GiveBack(Copy* copy) {
  if (copy->buffer != nullptr) BufferPool::GiveBack(copy->buffer);
  copy->buffer = nullptr;
  copy->use = nullptr;
  copy->use_digest = nullptr;
  std::lock_guard hold(mutex_);
  copy->next = free_copies_;
  free_copies_ = copy;
}

bool CudaDevice::Send(Copy* copy, CUstream stream) {
  // Without an event it is unknown when the buffer is free again: it is given up.
  if (driver_.cuEventRecord(copy->done, stream) != CUDA_SUCCESS) return false;
  on_their_way_.fetch_add(1, std::memory_order_relaxed);
  Queue(copy);
  return true;
}

void CudaDevice::Queue(Copy* copy) {
  {
    std::lock_guard hold(mutex_);
    if (!has_thread_) StartThread();
    copy->next = nullptr;
    *sent_end_ = copy;
    sent_end_ = &copy->next;
  }
  sends_.fetch_add(1, std::memory_order_release);
  FutexWake(sends_, 1);
}

void CudaDevice::StartThread() {
  const Guard guard;  // the thread is Deja's own
  const ScopedSignalBlock block;
  pthread_t thread;
  has_thread_ = pthread_create(&thread, nullptr, &Run, this) == 0;
  if (has_thread_) pthread_detach(thread);
}

void* CudaDevice::Run(void* self) {
  // What this thread records has a stream of its own; no program's thread is called so.
  if (ThreadRecord* record = NewThreadRecord()) {
    std::strcpy(record->name, "deja-cuda");
    SetSelf(record);
  }
  static_cast<CudaDevice*>(self)->HandOn();
  return nullptr;
}

CUresult CudaDevice::Ask(const Copy& copy) const {
  if (copy.owner == nullptr) return CUDA_SUCCESS;
  const StreamScope scope(driver_, copy.owner);
  return scope.context() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : driver_.cuEventQuery(copy.done);
}

void CudaDevice::HandOn(const Copy& copy) {
  std::span<const std::byte> bytes;
  if (copy.answer == DeviceAnswer::kTaken && copy.buffer != nullptr)
    bytes = {copy.buffer->memory, copy.bytes};
  if (copy.use != nullptr) copy.use(copy.answer, bytes, copy.context);
  if (copy.use_digest == nullptr) return;
  digest::TensorDigest digest;
  if (copy.answer == DeviceAnswer::kTaken)
    digest = copy.tensor_bytes == 0 ? digest::DigestTensor(bytes, copy.dtype)
                                    : digest::DigestOfSums(copy.tensor_bytes, copy.dtype, bytes);
  copy.use_digest(copy.answer, digest, copy.context);
}

void CudaDevice::HandOn() {
  Copy* waiting = nullptr;
  Copy** end = &waiting;
  uint32_t pause = kShortestPauseUs;
  for (;;) {
    const uint32_t seen = sends_.load(std::memory_order_acquire);
    {
      std::lock_guard hold(mutex_);
      *end = sent_;
      if (sent_ != nullptr) end = sent_end_;
      sent_ = nullptr;
      sent_end_ = &sent_;
    }
    bool moved = false;
    for (Copy** at = &waiting; *at != nullptr;) {
      Copy* copy = *at;
      const CUresult result = Ask(*copy);
      if (result == CUDA_ERROR_NOT_READY) {
        at = &copy->next;
        continue;
      }
      *at = copy->next;
      if (end == &copy->next) end = at;
      if (result != CUDA_SUCCESS) copy->answer = DeviceAnswer::kFailed;
      HandOn(*copy);
      GiveBack(copy);
      on_their_way_.fetch_sub(1, std::memory_order_release);
      moved = true;
    }
    rounds_.fetch_add(1, std::memory_order_release);
    if (waiting == nullptr) {
      FutexWait(sends_, seen, 1000);
      pause = kShortestPauseUs;
    } else {
      SleepMicroseconds(pause);
      pause = moved ? kShortestPauseUs : std::min(pause * 2, kLongestPauseUs);
    }
  }
}

void* CudaDevice::Allocate(uint64_t bytes) {
  CUdeviceptr memory = 0;
  if (driver_.cuMemAlloc_v2(&memory, bytes) != CUDA_SUCCESS) return nullptr;
  return reinterpret_cast<void*>(static_cast<uintptr_t>(memory));
}

bool CudaDevice::Free(void* memory) {
  return KindOf(memory) == MemoryKind::kDevice &&
         driver_.cuMemFree_v2(DeviceAddress(memory)) == CUDA_SUCCESS;
}

void CudaDevice::TakeWhatCame(uint32_t limit_ms) {
  const uint32_t before = rounds_.load(std::memory_order_acquire);
  sends_.fetch_add(1, std::memory_order_release);
  FutexWake(sends_, 1);
  // The round that is under way may have asked already.
  constexpr uint32_t kRounds = 2;
  for (uint32_t waited_us = 0;
       on_their_way_.load(std::memory_order_acquire) != 0 &&
       rounds_.load(std::memory_order_acquire) - before < kRounds && waited_us < limit_ms * 1000;
       waited_us += kLongestPauseUs)
    SleepMicroseconds(kLongestPauseUs);
}

Gate* CudaDevice::NewGate() {
  Buffer* buffer = pinned_.Take(sizeof(Gate));
  return buffer == nullptr ? nullptr : new (buffer->memory) Gate;
}

DeviceAnswer CudaDevice::Hold(uint64_t stream, Gate& gate) {
  const StreamScope scope(driver_, stream);
  const DeviceAnswer answer = StateOf(scope, StreamOf(stream));
  if (answer != DeviceAnswer::kTaken) return answer;
  // Where a device sees registered memory may be elsewhere.
  CUdeviceptr open = 0;
  if (driver_.cuStreamWaitValue32_v2 != nullptr &&
      driver_.cuMemHostGetDevicePointer_v2(&open, &gate.open, 0) == CUDA_SUCCESS &&
      driver_.cuStreamWaitValue32_v2(StreamOf(stream), open, 1, CU_STREAM_WAIT_VALUE_GEQ) ==
          CUDA_SUCCESS)
    return DeviceAnswer::kTaken;
  // Other host functions may have to wait, too: the driver has few threads for them.
  auto wait = [](void* opaque) {
    const Guard guard;
    auto& open = static_cast<Gate*>(opaque)->open;
    while (open.load(std::memory_order_acquire) == 0) FutexWait(open, 0, 1000);
  };
  return driver_.cuLaunchHostFunc(StreamOf(stream), wait, &gate) == CUDA_SUCCESS
             ? DeviceAnswer::kTaken
             : DeviceAnswer::kFailed;
}

bool CudaDevice::Drain(uint32_t limit_ms) {
  for (uint32_t waited_us = 0; on_their_way_.load(std::memory_order_acquire) != 0;
       waited_us += kLongestPauseUs) {
    if (waited_us >= limit_ms * 1000) return false;
    SleepMicroseconds(kLongestPauseUs);
  }
  return true;
}

}  // namespace deja::preload
