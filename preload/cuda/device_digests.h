// DeviceDigests: digests of tensors in a device's memory, made there.
//
// A kernel (digest_kernel.h) reads the tensor on the program's stream and leaves a fifteenth of its
// bytes in memory of the device. A stream of Deja's own brings them to the host, and the program's
// stream does not wait for that. Each context has the module, that stream, and kScratches places
// for results (MostResultsOfPiece() bytes each: 26 MiB together). They are made when the context is
// first used and stay with it; a tensor larger than a place goes through in pieces. A place is used
// again when its results have been brought. Before that, only the stream that used it last may use
// it again, and waits on the device. No stream waits for another one of the program's.
//
// Where the driver does not take the kernels there are no digests of a context, which one line on
// stderr says.
//
// Owner: the device. Any thread.
#ifndef DEJA_PRELOAD_CUDA_DEVICE_DIGESTS_H_
#define DEJA_PRELOAD_CUDA_DEVICE_DIGESTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/runtime/futex.h"
#include "preload/cuda/driver.h"

namespace deja::preload {

class DeviceDigests {
 public:
  static constexpr uint32_t kScratches = 6;
  // What is smaller is copied as fast as it is digested.
  static constexpr uint64_t kSmallest = uint64_t{64} << 10;

  class Context;

  explicit DeviceDigests(const CudaDriver& driver) : driver_(driver) {}

  // What there is for digests in the current context, which is `handle`; made on first use, which
  // takes the driver a while. Null: there are none, or another thread is making it.
  Context* Of(CUcontext handle);
  // True if kernels of the current context can read `data`.
  [[nodiscard]] bool CanRead(const void* data) const;
  // Enqueues the digest of what `data` has when `stream`, one of the current context, has done what
  // was enqueued so far. Results go to `results` (pinned, of the size that SummedTensor gives) in
  // the order of Copies(). Result kNone: nothing was enqueued, for lack of a place. kPartly: the
  // driver refused, and something may still be written to `results`.
  enum class Enqueued : uint8_t { kWhole, kPartly, kNone };
  Enqueued Enqueue(Context& context, const void* data, uint64_t bytes, uint32_t dtype,
                   CUstream stream, std::byte* results);
  static CUstream Copies(const Context& context);

 private:
  struct Scratch;
  struct Launch;

  void Make(Context& context);
  CUresult MakeScratches(Context& context);
  Scratch* Take(Context& context, CUstream stream);
  static void GiveBack(Context& context, Scratch& scratch);
  CUresult EnqueuePiece(const Context& context, Scratch& scratch, const Launch& launch);
  void Say(const char* what, CUresult result);

  const CudaDriver& driver_;
  FutexMutex mutex_;
  Context* contexts_ = nullptr;
  std::atomic<bool> said_{false};
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CUDA_DEVICE_DIGESTS_H_
