#include "preload/cuda/buffer_pool.h"

#include <sys/mman.h>

#include <bit>
#include <mutex>
#include <new>

#include "common/runtime/own_mapping.h"

namespace deja::preload {

void SleepMicroseconds(uint32_t microseconds) {
  const timespec time{0, static_cast<long>(microseconds) * 1000};
  syscall(SYS_nanosleep, &time, nullptr);
}

BufferPool::Buffer* BufferPool::Take(uint64_t bytes) {
  constexpr uint32_t kPauseUs = 1000;
  const auto wanted = static_cast<uint32_t>(std::bit_width(bytes == 0 ? 0 : bytes - 1));
  const uint32_t size_class = wanted <= kSmallestClass ? 0 : wanted - kSmallestClass;
  if (size_class >= kClasses) return nullptr;
  for (uint32_t waited_us = 0;; waited_us += kPauseUs) {
    bool may_grow = false;
    {
      std::lock_guard hold(mutex_);
      if (Buffer* buffer = Free(size_class)) {
        impatient_ = false;
        return buffer;
      }
      const uint64_t size = uint64_t{1} << (size_class + kSmallestClass);
      may_grow = bytes_ + size <= max_bytes_;
      if (may_grow) bytes_ += size;
    }
    if (may_grow) return New(size_class);
    if (impatient_ || busy_ == 0) return nullptr;
    if (waited_us / 1000 >= patience_ms_) {
      impatient_ = true;
      return nullptr;
    }
    SleepMicroseconds(kPauseUs);
  }
}

void BufferPool::GiveBack(Buffer* buffer) {
  BufferPool& pool = *buffer->owner;
  std::lock_guard hold(pool.mutex_);
  buffer->next = pool.free_[buffer->size_class];
  pool.free_[buffer->size_class] = buffer;
}

// The smallest one that is large enough.
BufferPool::Buffer* BufferPool::Free(uint32_t size_class) {
  for (uint32_t i = size_class; i < kClasses; ++i) {
    Buffer* buffer = free_[i];
    if (buffer == nullptr) continue;
    free_[i] = buffer->next;
    return buffer;
  }
  return nullptr;
}

BufferPool::Buffer* BufferPool::New(uint32_t size_class) {
  const size_t size = size_t{1} << (size_class + kSmallestClass);
  void* memory = MapOwn(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  auto* buffer = memory == MAP_FAILED ? nullptr : new (std::nothrow) Buffer;
  // A device goes on with the pages that it was given. After a fork they would be shared with the
  // child until one of the two writes, and whoever does so gets others (kernels before 5.12).
  if (driver_ != nullptr && memory != MAP_FAILED) madvise(memory, size, MADV_DONTFORK);
  constexpr unsigned int kHow = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  if (buffer != nullptr &&
      (driver_ == nullptr || driver_->cuMemHostRegister_v2(memory, size, kHow) == CUDA_SUCCESS)) {
    buffer->owner = this;
    buffer->memory = static_cast<std::byte*>(memory);
    buffer->size_class = size_class;
    return buffer;
  }
  delete buffer;
  if (memory != MAP_FAILED) munmap(memory, size);
  std::lock_guard hold(mutex_);
  bytes_ -= size;
  return nullptr;
}

}  // namespace deja::preload
