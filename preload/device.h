// Device: where the memory of NCCL's buffers lives and when it holds the result of a call.
//
// One object serves the whole process. NCCL enqueues work on a stream and returns; a device knows
// how to see the bytes that the stream will have read or written. With host memory and a library
// that works synchronously (loopback/) the data is there when the call returns, which is all that
// HostDevice knows. Any thread; no allocation; never blocks the program's streams.
#ifndef DEJA_PRELOAD_DEVICE_H_
#define DEJA_PRELOAD_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace deja::preload {

// How a buffer's memory can be reached.
enum class MemoryKind : uint8_t { kHost, kDevice, kManaged };

class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual MemoryKind KindOf(const void* data) const = 0;
  // True if the CPU may read and write `kind` in place.
  [[nodiscard]] virtual bool CpuReadable(MemoryKind kind) const = 0;

  // Called on the thread that made the call, when `stream` has been told to read (write) `data`:
  // hands the bytes that the operation sees to `use`, before they change again. Returns false if
  // they cannot be seen (the stream is being captured, the memory is not the CPU's …); `use` is
  // then not called. HostDevice calls it at once.
  using UseBytes = void (*)(std::span<const std::byte> bytes, void* context);
  virtual bool WithBytes(const void* data, uint64_t bytes, uint64_t stream, UseBytes use,
                         void* context) = 0;

  // Puts `bytes` into `data` in the order of `stream` (a replay that serves a result).
  virtual bool Fill(void* data, std::span<const std::byte> bytes, uint64_t stream) = 0;
};

// The device of this process. HostDevice unless a device library has been found.
Device& TheDevice();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_DEVICE_H_
