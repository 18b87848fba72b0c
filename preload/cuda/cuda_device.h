// CudaDevice: memory of CUDA devices, of however many the process uses.
//
// Every copy is enqueued on the program's own stream, in the context of that stream, so that it is
// ordered with what the program enqueues before and after: no stream waits for another one's work
// because of Deja, which could be waited for by a peer. One thread of Deja's asks the copies'
// events whether they are done and hands the bytes on; nothing calls back into the program or waits
// for a device. The program's current context and capture mode are left as they were, and the
// driver has no last error that could be changed.
//
// Host memory: pinned buffers, kMaxPinnedBytes together, made when they are needed and used again.
// They are ordinary memory that is registered with the driver, so that they stay readable whatever
// the program does to its contexts. Device memory: none.
//
// One object, never destroyed. Any thread.
#ifndef DEJA_PRELOAD_CUDA_CUDA_DEVICE_H_
#define DEJA_PRELOAD_CUDA_CUDA_DEVICE_H_

#include <atomic>
#include <cstdint>

#include "format/futex.h"
#include "preload/cuda/driver.h"
#include "preload/device.h"

namespace deja::preload {

class CudaDevice final : public Device {
 public:
  static constexpr uint64_t kMaxPinnedBytes = uint64_t{1} << 30;
  // Who finds all buffers in use waits this long. The work that holds them may itself wait for
  // what the calling thread does next, so it cannot be forever.
  static constexpr uint32_t kPatienceMs = 5000;

  explicit CudaDevice(const CudaDriver& driver) : driver_(driver) {}

  [[nodiscard]] MemoryKind KindOf(const void* data) const override;
  DeviceAnswer Read(const void* data, uint64_t bytes, uint64_t stream, UseBytes use,
                    void* context) override;
  DeviceAnswer Write(void* data, uint64_t bytes, uint64_t stream, MakeBytes make,
                     void* context) override;
  bool Drain(uint32_t limit_ms) override;

 private:
  struct Buffer {
    Buffer* next = nullptr;
    std::byte* memory = nullptr;
    uint32_t size_class = 0;
  };
  // A copy on its way. Its event belongs to `owner`.
  struct Copy {
    Copy* next = nullptr;
    CUcontext owner = nullptr;
    CUevent done = nullptr;
    Buffer* buffer = nullptr;
    uint64_t bytes = 0;
    UseBytes use = nullptr;  // null: there is nothing to hand on
    void* context = nullptr;
  };
  class InContextOf;

  static constexpr uint32_t kSmallestClass = 16;  // 64 KiB
  static constexpr uint32_t kClasses = 31 - kSmallestClass;

  // False if nothing may be enqueued on the stream; `answer` then says why.
  bool MayEnqueue(const InContextOf& scope, CUstream stream, DeviceAnswer& answer) const;
  // A copy for work that is put on the stream; null if there can be none, and `answer` says why.
  Copy* TakeFor(const InContextOf& scope, CUstream stream, uint64_t bytes, DeviceAnswer& answer);
  // A copy with an event of `context` and a buffer; null when there is none.
  Copy* Take(CUcontext context, uint64_t bytes);
  Buffer* TakeBuffer(uint64_t bytes);
  Buffer* FreeBuffer(uint32_t size_class);  // under mutex_
  Buffer* NewBuffer(uint32_t size_class);
  void GiveBack(Copy* copy);
  // Records the event behind the copy and hands it to the thread. False: no event could be
  // recorded.
  bool Send(Copy* copy, CUstream stream);
  void StartThread();
  static void* Run(void* self);
  void HandOn();
  // What the event says. CUDA_ERROR_NOT_READY: ask again.
  CUresult Ask(const Copy& copy) const;

  const CudaDriver& driver_;
  format::FutexMutex mutex_;
  Copy* sent_ = nullptr;  // in the order of sending
  Copy** sent_end_ = &sent_;
  Copy* free_copies_ = nullptr;
  Buffer* free_buffers_[kClasses] = {};
  uint64_t pinned_bytes_ = 0;
  bool has_thread_ = false;
  std::atomic<bool> impatient_{false};     // waiting for a buffer was in vain the last time
  std::atomic<uint32_t> on_their_way_{0};  // copies that were sent and not handed on
  std::atomic<uint32_t> sends_{0};         // the thread sleeps on this
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CUDA_CUDA_DEVICE_H_
