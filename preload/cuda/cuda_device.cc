#include "preload/cuda/cuda_device.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>

#include "preload/guard.h"
#include "preload/threads.h"

namespace deja::preload {
namespace {

constexpr uint32_t kShortestPauseUs = 20;
constexpr uint32_t kLongestPauseUs = 1000;

void Pause(uint32_t microseconds) {
  const timespec time{0, static_cast<long>(microseconds) * 1000};
  syscall(SYS_nanosleep, &time, nullptr);
}

CUdeviceptr Address(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

CUstream Stream(uint64_t handle) {
  return reinterpret_cast<CUstream>(handle);
}

}  // namespace

// In this scope the current context is the one that the stream belongs to, and what is called does
// not disturb captures of other streams.
class CudaDevice::InContextOf {
 public:
  InContextOf(const CudaDriver& driver, uint64_t stream) : driver_(driver) {
    driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    CUcontext current = nullptr;
    if (driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS) return;
    context_ = current;
    // Handles below are names for the default streams of the current context.
    constexpr uint64_t kLastSpecial = 2;
    if (stream <= kLastSpecial) return;
    if (driver_.cuStreamGetCtx(Stream(stream), &context_) != CUDA_SUCCESS) context_ = nullptr;
    Enter(current);
  }
  InContextOf(const CudaDriver& driver, CUcontext context) : driver_(driver), context_(context) {
    driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    Enter(nullptr);
  }
  ~InContextOf() {
    if (pushed_) driver_.cuCtxPopCurrent_v2(nullptr);
    driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  InContextOf(const InContextOf&) = delete;
  InContextOf& operator=(const InContextOf&) = delete;

  // Null: there is none.
  [[nodiscard]] CUcontext context() const { return context_; }

 private:
  void Enter(CUcontext current) {
    if (context_ == nullptr || context_ == current) return;
    pushed_ = driver_.cuCtxPushCurrent_v2(context_) == CUDA_SUCCESS;
    if (!pushed_) context_ = nullptr;
  }

  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUcontext context_ = nullptr;
  bool pushed_ = false;
};

MemoryKind CudaDevice::KindOf(const void* data) const {
  unsigned int type = 0;
  unsigned int managed = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void* answers[] = {&type, &managed};
  // Fails before the program has initialised the driver: it has no other memory then.
  if (driver_.cuPointerGetAttributes(2, asked, answers, Address(data)) != CUDA_SUCCESS)
    return MemoryKind::kHost;
  if (managed != 0) return MemoryKind::kManaged;
  if (type == CU_MEMORYTYPE_HOST) return MemoryKind::kPinned;
  return type == 0 ? MemoryKind::kHost : MemoryKind::kDevice;
}

bool CudaDevice::MayEnqueue(const InContextOf& scope, CUstream stream, DeviceAnswer& answer) const {
  answer = DeviceAnswer::kFailed;
  if (scope.context() == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = driver_.cuStreamIsCapturing(stream, &status);
  // The legacy stream cannot even be asked while one that it waits for is captured.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || status != CU_STREAM_CAPTURE_STATUS_NONE)
    answer = DeviceAnswer::kCapturing;
  else if (result == CUDA_SUCCESS)
    answer = DeviceAnswer::kTaken;
  return answer == DeviceAnswer::kTaken;
}

CudaDevice::Copy* CudaDevice::TakeFor(const InContextOf& scope, CUstream stream, uint64_t bytes,
                                      DeviceAnswer& answer) {
  if (!MayEnqueue(scope, stream, answer)) return nullptr;
  Copy* copy = Take(scope.context(), bytes);
  if (copy == nullptr) answer = DeviceAnswer::kNoMemory;
  return copy;
}

DeviceAnswer CudaDevice::Read(const void* data, uint64_t bytes, uint64_t stream, UseBytes use,
                              void* context) {
  const InContextOf scope(driver_, stream);
  DeviceAnswer answer;
  Copy* copy = TakeFor(scope, Stream(stream), bytes, answer);
  if (copy == nullptr) return answer;
  copy->use = use;
  copy->context = context;
  if (driver_.cuMemcpyAsync(Address(copy->buffer->memory), Address(data), bytes, Stream(stream)) !=
      CUDA_SUCCESS) {
    GiveBack(copy);
    return DeviceAnswer::kFailed;
  }
  return Send(copy, Stream(stream)) ? DeviceAnswer::kTaken : DeviceAnswer::kFailed;
}

DeviceAnswer CudaDevice::Write(void* data, uint64_t bytes, uint64_t stream, MakeBytes make,
                               void* context) {
  const InContextOf scope(driver_, stream);
  DeviceAnswer answer;
  Copy* copy = TakeFor(scope, Stream(stream), bytes, answer);
  if (copy == nullptr) return answer;
  copy->use = nullptr;
  if (!make({copy->buffer->memory, bytes}, context) ||
      driver_.cuMemcpyAsync(Address(data), Address(copy->buffer->memory), bytes, Stream(stream)) !=
          CUDA_SUCCESS) {
    GiveBack(copy);
    return DeviceAnswer::kFailed;
  }
  return Send(copy, Stream(stream)) ? DeviceAnswer::kTaken : DeviceAnswer::kFailed;
}

CudaDevice::Copy* CudaDevice::Take(CUcontext context, uint64_t bytes) {
  Buffer* buffer = TakeBuffer(bytes);
  if (buffer == nullptr) return nullptr;
  Copy* copy = nullptr;
  {
    std::lock_guard hold(mutex_);
    Copy** at = &free_copies_;
    while (*at != nullptr && (*at)->owner != context) at = &(*at)->next;
    copy = *at;
    if (copy != nullptr) *at = copy->next;
  }
  if (copy == nullptr) copy = new (std::nothrow) Copy;
  if (copy != nullptr && copy->done == nullptr) {
    copy->owner = context;
    if (driver_.cuEventCreate(&copy->done, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
      delete copy;
      copy = nullptr;
    }
  }
  if (copy == nullptr) {
    std::lock_guard hold(mutex_);
    buffer->next = free_buffers_[buffer->size_class];
    free_buffers_[buffer->size_class] = buffer;
    return nullptr;
  }
  copy->buffer = buffer;
  copy->bytes = bytes;
  return copy;
}

CudaDevice::Buffer* CudaDevice::TakeBuffer(uint64_t bytes) {
  const auto wanted = static_cast<uint32_t>(std::bit_width(bytes == 0 ? 0 : bytes - 1));
  const uint32_t size_class = wanted <= kSmallestClass ? 0 : wanted - kSmallestClass;
  if (size_class >= kClasses) return nullptr;
  for (uint32_t waited_us = 0;; waited_us += kLongestPauseUs) {
    bool may_grow = false;
    {
      std::lock_guard hold(mutex_);
      if (Buffer* buffer = FreeBuffer(size_class)) {
        impatient_ = false;
        return buffer;
      }
      const uint64_t size = uint64_t{1} << (size_class + kSmallestClass);
      may_grow = pinned_bytes_ + size <= kMaxPinnedBytes;
      if (may_grow) pinned_bytes_ += size;
    }
    if (may_grow) return NewBuffer(size_class);
    if (impatient_ || on_their_way_ == 0) return nullptr;
    if (waited_us >= kPatienceMs * 1000) {
      impatient_ = true;
      return nullptr;
    }
    Pause(kLongestPauseUs);
  }
}

// The smallest one that is large enough.
CudaDevice::Buffer* CudaDevice::FreeBuffer(uint32_t size_class) {
  for (uint32_t i = size_class; i < kClasses; ++i) {
    Buffer* buffer = free_buffers_[i];
    if (buffer == nullptr) continue;
    free_buffers_[i] = buffer->next;
    return buffer;
  }
  return nullptr;
}

CudaDevice::Buffer* CudaDevice::NewBuffer(uint32_t size_class) {
  const size_t size = size_t{1} << (size_class + kSmallestClass);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* buffer = memory == MAP_FAILED ? nullptr : new (std::nothrow) Buffer;
  if (buffer != nullptr &&
      driver_.cuMemHostRegister_v2(memory, size, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS) {
    buffer->memory = static_cast<std::byte*>(memory);
    buffer->size_class = size_class;
    return buffer;
  }
  delete buffer;
  if (memory != MAP_FAILED) munmap(memory, size);
  std::lock_guard hold(mutex_);
  pinned_bytes_ -= size;
  return nullptr;
}

void CudaDevice::GiveBack(Copy* copy) {
  std::lock_guard hold(mutex_);
  copy->buffer->next = free_buffers_[copy->buffer->size_class];
  free_buffers_[copy->buffer->size_class] = copy->buffer;
  copy->buffer = nullptr;
  copy->next = free_copies_;
  free_copies_ = copy;
}

bool CudaDevice::Send(Copy* copy, CUstream stream) {
  // Without an event nobody can tell when the buffer is free again: it is given up.
  if (driver_.cuEventRecord(copy->done, stream) != CUDA_SUCCESS) return false;
  {
    std::lock_guard hold(mutex_);
    if (!has_thread_) StartThread();
    copy->next = nullptr;
    *sent_end_ = copy;
    sent_end_ = &copy->next;
    on_their_way_.fetch_add(1, std::memory_order_relaxed);
  }
  sends_.fetch_add(1, std::memory_order_release);
  format::FutexWake(sends_, 1);
  return true;
}

// Under mutex_.
void CudaDevice::StartThread() {
  const Guard guard;  // the thread is Deja's own
  const format::ScopedSignalBlock block;
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
  const InContextOf scope(driver_, copy.owner);
  return scope.context() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : driver_.cuEventQuery(copy.done);
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
      const uint64_t came = result == CUDA_SUCCESS ? copy->bytes : 0;
      if (copy->use != nullptr) copy->use({copy->buffer->memory, came}, copy->context);
      GiveBack(copy);
      on_their_way_.fetch_sub(1, std::memory_order_release);
      moved = true;
    }
    if (waiting == nullptr) {
      format::FutexWait(sends_, seen, 1000);
      pause = kShortestPauseUs;
    } else {
      Pause(pause);
      pause = moved ? kShortestPauseUs : std::min(pause * 2, kLongestPauseUs);
    }
  }
}

bool CudaDevice::Drain(uint32_t limit_ms) {
  for (uint32_t waited_us = 0; on_their_way_.load(std::memory_order_acquire) != 0;
       waited_us += kLongestPauseUs) {
    if (waited_us >= limit_ms * 1000) return false;
    Pause(kLongestPauseUs);
  }
  return true;
}

}  // namespace deja::preload
