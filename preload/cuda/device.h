// Device: where the memory of NCCL's buffers lives, and how Deja reads and writes it.
//
// One object serves the whole process. NCCL enqueues work on a stream and returns; what a call
// reads or writes is there when the stream has come so far. Host memory, and a library that works
// synchronously (loopback/), need none of this: the caller uses such memory itself. Until the
// program has loaded a driver all memory is host memory; with one, CudaDevice (cuda/cuda_device.h)
// copies in the order of the program's streams.
//
// Any thread, under the guard. Nothing here waits for a stream, with the exceptions that are named.
#ifndef DEJA_PRELOAD_CUDA_DEVICE_H_
#define DEJA_PRELOAD_CUDA_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "digest/digest.h"

namespace deja::preload {

// How a buffer's memory can be reached. All but kHost are read and written in the order of streams.
enum class MemoryKind : uint8_t { kHost, kPinned, kDevice, kManaged };

// What became of a request.
enum class DeviceAnswer : uint8_t {
  kTaken,       // it has been enqueued; of bytes: they are here
  kCapturing,   // the stream is being captured into a graph: nothing was enqueued
  kNoMemory,    // there is no pinned memory for it
  kFailed,      // the driver refused, or there is none
  kOverlapped,  // launches of one captured call ran at the same time: the bytes are of neither
  kInBody,      // the graph is a body of a conditional node: nothing was enqueued
};

// Where the bytes of a captured call go at each of its launches.
enum class LaunchUse : uint8_t {
  kLater,   // to a thread of Deja's, as copies
  kInNode,  // nowhere: they are used where the graph stands, which waits for that
};

// Where streams wait. Devices read the word.
struct Gate {
  std::atomic<uint32_t> open{0};

  // Lets all that wait go on. Any thread.
  void Open();
};

class Device {
 public:
  virtual ~Device() = default;

  // Where `data` lies.
  [[nodiscard]] virtual MemoryKind KindOf(const void* data) const = 0;

  // The bytes that `data` has when `stream` has done what was enqueued so far go to `use`, once, on
  // a thread of Deja's. They are empty if they never came; `answer` says why. The stream's later
  // work waits for the copy, so that it cannot change them before. Nothing is called unless Read
  // answers kTaken.
  using UseBytes = void (*)(DeviceAnswer answer, std::span<const std::byte> bytes, void* context);
  virtual DeviceAnswer Read(const void* data, uint64_t bytes, uint64_t stream, UseBytes use,
                            void* context) = 0;

  // `use` is called once when `stream` has done what was enqueued so far, without bytes.
  virtual DeviceAnswer Notify(uint64_t stream, UseBytes use, void* context) = 0;

  // As Read, for what becomes of the bytes, which the device computes itself where it can: then
  // they do not leave it. The stream's later work waits for that as for a copy.
  using UseDigest = void (*)(DeviceAnswer answer, const digest::TensorDigest& digest,
                             void* context);
  virtual DeviceAnswer Digest(const void* data, uint64_t bytes, uint32_t dtype, uint64_t stream,
                              UseDigest use, void* context) = 0;
  // Makes what Digest needs of the calling thread's current context, which takes a moment: the
  // driver translates kernels. Otherwise the first digest of a context does.
  virtual void PrepareDigests() = 0;

  // `make` fills as many bytes at once, and they are put into `data` in the order of `stream`.
  // kFailed also if `make` returns false.
  using MakeBytes = bool (*)(std::span<std::byte> bytes, void* context);
  virtual DeviceAnswer Write(void* data, uint64_t bytes, uint64_t stream, MakeBytes make,
                             void* context) = 0;

  // True if what is enqueued on `stream` now becomes part of a graph.
  [[nodiscard]] virtual bool IsCaptured(uint64_t stream) const = 0;

  // The same for a stream that is captured. The graph gets nodes that read `data` (write it) each
  // time that it is launched, in the order of its work. `use` is called once a launch, in the order
  // of the launches. `make` is called on a thread of the driver, and may not call the driver; the
  // launch brings what it leaves. The context has to stay for good. A graph may be launched as long
  // as the process lives. kCapturing, kInBody: the graph cannot have such nodes.
  // `turn` names a communicator. Launches take turns, in the order in which the program makes them.
  // Each waits, at its first such node of a turn, for the last one of the launch before it. Drivers
  // before CUDA 11.1 have no turns.
  virtual DeviceAnswer ReadAtLaunches(const void* data, uint64_t bytes, uint64_t stream,
                                      uint64_t turn, UseBytes use, void* context,
                                      LaunchUse when) = 0;
  virtual DeviceAnswer WriteAtLaunches(void* data, uint64_t bytes, uint64_t stream, uint64_t turn,
                                       MakeBytes make, void* context) = 0;

  // Memory of the device whose context is current, as ncclMemAlloc gives it. Null: there is none,
  // or no device.
  virtual void* Allocate(uint64_t bytes) = 0;
  // False if it was not allocated here.
  virtual bool Free(void* memory) = 0;

  // Waits until what is there by now of all that was taken has been used, at most for `limit_ms`.
  // Streams that have not come so far are not waited for.
  virtual void TakeWhatCame(uint32_t limit_ms) = 0;

  // A gate that is closed, for good in the process; null if there can be none. What is enqueued on
  // a stream after Hold waits until the gate is opened. Hold is kFailed if the driver refuses.
  virtual Gate* NewGate() = 0;
  virtual DeviceAnswer Hold(uint64_t stream, Gate& gate) = 0;

  // Waits until all that was taken has been used, at most for `limit_ms`. False if some is left.
  // Async-signal-safe.
  virtual bool Drain(uint32_t limit_ms) = 0;
};

// The device of this process.
Device& TheDevice();
inline bool IsHostMemory(const void* data) {
  return TheDevice().KindOf(data) == MemoryKind::kHost;
}

// Looks whether the program has loaded a driver by now; cheap once it has. It is never loaded or
// initialised for the program.
void LookForDevice();
// In the child after fork: a driver does not work there.
void ForgetDeviceInChild();

// How long a call waits for pinned memory when earlier ones use all of it; from now on, in the
// whole process. The default is BufferPool's.
void SetDevicePatience(uint32_t ms);

// False: digests are made of copies, on the host. For good; before the first of them.
void UseDeviceDigests(bool use);

// Digest, and waits for it; as ReadAndWait.
std::optional<digest::TensorDigest> DigestAndWait(const void* data, uint64_t bytes, uint32_t dtype,
                                                  uint64_t stream);
// Reads, and waits for the bytes, however long the stream takes: for a replay. Nothing if they
// cannot be had.
std::optional<std::vector<std::byte>> ReadAndWait(const void* data, uint64_t bytes,
                                                  uint64_t stream);
// Memory that the program shows without a stream, as the legacy default stream of the thread's
// device leaves it. That stream waits for blocking ones. Both functions wait for it. They go piece
// by piece, so that there is no limit to the size. Nothing, or false, if the driver refuses, as it
// does while a stream is captured.
std::optional<std::vector<std::byte>> ReadShown(const void* data, uint64_t bytes);
bool WriteShown(void* data, std::span<const std::byte> bytes);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CUDA_DEVICE_H_
