// BufferPool: host memory for copies from and to devices, in buffers of a few sizes that are used
// again.
//
// Ordinary memory, made when it is needed and kept; a pool with a driver registers it there, so
// that it is pinned and stays readable whatever the program does to its contexts. Such a pool calls
// the driver, and is not for its host functions; forked children do not have its buffers.
//
// Owner: the device. Any thread.
#ifndef DEJA_PRELOAD_CUDA_BUFFER_POOL_H_
#define DEJA_PRELOAD_CUDA_BUFFER_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/runtime/futex.h"
#include "preload/cuda/driver.h"

namespace deja::preload {

class BufferPool {
 public:
  // A thread that finds all buffers in use waits this long. Programs are ahead of their devices, by
  // seconds where steps are long. But the work that holds the buffers may itself wait for what the
  // calling thread does next, so while recording it cannot be forever.
  static constexpr uint32_t kPatienceMs = 30000;
  static void SetPatience(uint32_t ms) { patience_ms_ = ms; }

  struct Buffer {
    Buffer* next = nullptr;
    BufferPool* owner = nullptr;
    std::byte* memory = nullptr;
    uint32_t size_class = 0;
  };

  // `driver`: null if nothing is to be registered. `busy`: how many copies will give buffers back.
  BufferPool(uint64_t max_bytes, const CudaDriver* driver, const std::atomic<uint32_t>& busy)
      : max_bytes_(max_bytes), driver_(driver), busy_(busy) {}

  // Null: there is none, and none came back in time.
  Buffer* Take(uint64_t bytes);
  static void GiveBack(Buffer* buffer);

 private:
  static constexpr uint32_t kSmallestClass = 16;  // 64 KiB
  static constexpr uint32_t kClasses = 31 - kSmallestClass;

  Buffer* Free(uint32_t size_class);  // under mutex_
  Buffer* New(uint32_t size_class);

  static inline constinit std::atomic<uint32_t> patience_ms_{kPatienceMs};

  const uint64_t max_bytes_;
  const CudaDriver* const driver_;
  const std::atomic<uint32_t>& busy_;
  FutexMutex mutex_;
  Buffer* free_[kClasses] = {};
  uint64_t bytes_ = 0;
  std::atomic<bool> impatient_{false};  // waiting for a buffer was in vain the last time
};

// For threads that may not be interrupted by a signal's handler that the program has put on sleeps.
void SleepMicroseconds(uint32_t microseconds);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CUDA_BUFFER_POOL_H_
