// CudaDevice: memory of CUDA devices, of however many the process uses.
//
// Every copy is enqueued on the program's own stream, in the context of that stream. So it is
// ordered with what the program enqueues before and after. No stream waits for another one's work
// because of Deja: a peer could be waiting for it. One thread of Deja's asks the copies' events
// whether they are done and hands the bytes on; nothing calls back into the program or waits for a
// device. The program's current context and capture mode are left as they were, and the driver has
// no last error that could be changed.
//
// Nodes of a graph copy what is captured into it. A memcpy node goes to or from a pinned buffer of
// the captured call's own, between host nodes. The host nodes say when it is whole and hand a copy
// on; in a replay they fill the buffer. Launches of several executable graphs wait for each other's
// copies by nodes of an event, one a communicator. Where the driver lacks these, the host nodes
// notice copies that run at the same time. That works however a graph is launched, instantiated
// again, cloned or put into another one, since the nodes go with it. Bodies of conditional nodes
// cannot have such nodes and are not covered (conditional_bodies.h).
//
// Digests are computed by a kernel where the memory is the device's (device_digests.h), and of
// copies elsewhere. Captured buffers are copied in any case: a kernel's results would need memory
// of the device for each of them, for good.
//
// Host memory: pinned buffers, kMaxPinnedBytes together, and as much for the copies of launches.
// Buffers of captured calls are never given back. Device memory: what Allocate is asked for,
// and that of DeviceDigests.
//
// One object, never destroyed. Any thread.
#ifndef DEJA_PRELOAD_CUDA_CUDA_DEVICE_H_
#define DEJA_PRELOAD_CUDA_CUDA_DEVICE_H_

#include <atomic>
#include <cstdint>

#include "common/runtime/futex.h"
#include "preload/cuda/buffer_pool.h"
#include "preload/cuda/device.h"
#include "preload/cuda/device_digests.h"
#include "preload/cuda/driver.h"
#include "preload/cuda/stream_scope.h"

namespace deja::preload {

class CudaDevice final : public Device {
 public:
  static constexpr uint64_t kMaxPinnedBytes = uint64_t{1} << 30;

  // `digests`: made on the device where that can be.
  explicit CudaDevice(const CudaDriver& driver, bool digests = true)
      : driver_(driver),
        digests_on_(digests),
        digests_(driver),
        pinned_(kMaxPinnedBytes, &driver, on_their_way_),
        of_launches_(kMaxPinnedBytes, nullptr, on_their_way_) {}

  [[nodiscard]] MemoryKind KindOf(const void* data) const override;
  DeviceAnswer Read(const void* data, uint64_t bytes, uint64_t stream, UseBytes use,
                    void* context) override;
  DeviceAnswer Notify(uint64_t stream, UseBytes use, void* context) override;
  DeviceAnswer Digest(const void* data, uint64_t bytes, uint32_t dtype, uint64_t stream,
                      UseDigest use, void* context) override;
  void PrepareDigests() override;
  DeviceAnswer Write(void* data, uint64_t bytes, uint64_t stream, MakeBytes make,
                     void* context) override;
  [[nodiscard]] bool IsCaptured(uint64_t stream) const override;
  DeviceAnswer ReadAtLaunches(const void* data, uint64_t bytes, uint64_t stream, uint64_t turn,
                              UseBytes use, void* context, LaunchUse when) override;
  DeviceAnswer WriteAtLaunches(void* data, uint64_t bytes, uint64_t stream, uint64_t turn,
                               MakeBytes make, void* context) override;
  void* Allocate(uint64_t bytes) override;
  bool Free(void* memory) override;
  void TakeWhatCame(uint32_t limit_ms) override;
  Gate* NewGate() override;
  DeviceAnswer Hold(uint64_t stream, Gate& gate) override;
  bool Drain(uint32_t limit_ms) override;

 private:
  using Buffer = BufferPool::Buffer;
  // A copy on its way.
  struct Copy {
    Copy* next = nullptr;
    CUcontext owner = nullptr;  // of its event; null: it has none, and is done
    CUevent done = nullptr;
    Buffer* buffer = nullptr;
    uint64_t bytes = 0;
    DeviceAnswer answer = DeviceAnswer::kTaken;
    UseBytes use = nullptr;          // null: the bytes are not handed on
    UseDigest use_digest = nullptr;  // null: nor is their digest
    uint32_t dtype = 0;              // of the digest
    uint64_t tensor_bytes = 0;       // the bytes are sums of this many; 0: they are the tensor
    void* context = nullptr;
  };
  struct CapturedCopy;
  // Launches that wait for each other.
  struct Turn {
    Turn* next = nullptr;
    uint64_t name = 0;
    CUcontext context = nullptr;
    CUevent end = nullptr;  // of the latest launch
  };

  // What becomes of work that is put on the stream: kTaken, kCapturing or kFailed.
  DeviceAnswer StateOf(const StreamScope& scope, CUstream stream) const;
  // A copy for work that is put on the stream; null if there can be none, and `answer` says why.
  Copy* TakeFor(const StreamScope& scope, CUstream stream, uint64_t bytes, DeviceAnswer& answer);
  // Enqueues the copy itself.
  DeviceAnswer Bring(Copy* copy, const void* data, CUstream stream);
  struct TensorUse {
    UseDigest use;
    void* context;
    uint32_t dtype;
  };
  // False: the device cannot do it, and nothing is on its way.
  bool DigestThere(const StreamScope& scope, const void* data, uint64_t bytes,
                   const TensorUse& wanted, CUstream stream);
  // A free copy with an event of `context`; null when there is none.
  Copy* TakeCopy(CUcontext context);
  // A copy with an event of `context` and a buffer; null when there is none.
  Copy* Take(CUcontext context, uint64_t bytes);
  void GiveBack(Copy* copy);
  // Records the event after the copy and hands it to the thread. False: no event could be
  // recorded.
  bool Send(Copy* copy, CUstream stream);
  void Queue(Copy* copy);
  // A captured copy whose nodes may be put into the stream's graph; null if there can be none.
  CapturedCopy* Capture(const StreamScope& scope, CUstream stream, uint64_t bytes, uint64_t turn,
                        DeviceAnswer& answer);
  // Nodes before and after those of a copy. `end`: null where there can be none.
  CUevent BeginTurn(uint64_t turn, CUcontext context, CUstream stream);
  void EndTurn(CUevent end, CUstream stream) const;
  // What the nodes do.
  static void BeginRead(void* captured);
  static void EndRead(void* captured);
  static void FillForWrite(void* captured);
  void HandOnLaunch(const CapturedCopy& captured, DeviceAnswer answer);
  void StartThread();  // under mutex_
  static void* Run(void* self);
  void HandOn();
  static void HandOn(const Copy& copy);
  // What the event says. CUDA_ERROR_NOT_READY: ask again.
  CUresult Ask(const Copy& copy) const;

  const CudaDriver& driver_;
  const bool digests_on_;
  DeviceDigests digests_;
  FutexMutex mutex_;
  Copy* sent_ = nullptr;  // in the order of sending
  Copy** sent_end_ = &sent_;
  Copy* free_copies_ = nullptr;
  Turn* turns_ = nullptr;
  bool has_thread_ = false;
  std::atomic<uint32_t> on_their_way_{0};  // copies that were sent or begun and not handed on
  std::atomic<uint32_t> sends_{0};         // the thread sleeps on this
  std::atomic<uint32_t> rounds_{0};        // how often the thread has asked all events
  BufferPool pinned_;
  BufferPool of_launches_;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CUDA_CUDA_DEVICE_H_
