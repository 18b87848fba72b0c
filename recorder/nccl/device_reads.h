// Tensors that are not in the processor's memory. Their bytes come in the order of a stream, on a
// thread of Deja's, and become a CallResults event of that thread. Where only a digest is kept of
// them, the device computes it, and only the digest comes. Tensors of a call that was captured into
// a CUDA graph come once for each launch, in the order of the launches.
//
// One object in each Recording. Any thread, under the guard.
#ifndef DEJA_RECORDER_NCCL_DEVICE_READS_H_
#define DEJA_RECORDER_NCCL_DEVICE_READS_H_

#include <atomic>
#include <cstdint>

#include "format/wire/messages.h"
#include "preload/cuda/device.h"
#include "recorder/events/node_list.h"

namespace deja::recorder {

class Recording;

// An operation of a communicator.
struct OperationKey {
  uint32_t comm = 0;  // number + 1
  uint64_t comm_seq = 0;
  uint32_t series = 0;  // of its results, as format::SeriesNumber has it
};

class DeviceReads {
 public:
  explicit DeviceReads(Recording& recording) : recording_(recording) {}

  // True if the bytes of `data` must be asked for.
  static bool Needed(const void* data) {
    return preload::TheDevice().KindOf(data) != preload::MemoryKind::kHost;
  }
  // Asks for the `bytes` bytes of `tensor`, which has everything but its digest, as `stream` leaves
  // them; its payload is kept if `keep`. What cannot be seen is recorded as not seen, with the
  // reason.
  void Ask(OperationKey operation, const format::Tensor& tensor, uint64_t bytes, uint64_t stream,
           bool keep);
  // The operation leaves nothing in the rank's own memory: results without a tensor say that
  // `stream` has done it.
  void AskEnd(OperationKey operation, uint64_t stream);
  // The operation was given up: its tensor has no contents.
  void WriteAborted(OperationKey operation, format::Tensor tensor);
  // Says once in the trace that something of this kind could not be seen.
  void SayUnseen(preload::DeviceAnswer why);

 private:
  struct Read {
    Read* next = nullptr;
    DeviceReads* owner = nullptr;
    OperationKey operation;
    format::Tensor tensor;
    bool keep = false;
  };

  // Asks for the digest alone.
  preload::DeviceAnswer AskDigest(Read& read, uint64_t bytes, uint64_t stream);
  preload::DeviceAnswer AskBytes(Read& read, uint64_t bytes, uint64_t stream);
  // For a read that is asked for once: what follows Came.
  void Finish(Read* read);
  bool IsGivenUp(OperationKey operation) const;
  void Came(const Read& read, preload::DeviceAnswer how, std::span<const std::byte> bytes);
  void CameDigested(const Read& read, preload::DeviceAnswer how,
                    const digest::TensorDigest& digest);
  void Write(OperationKey operation, const format::Tensor& tensor);
  void WriteEnd(OperationKey operation);
  void WriteUnseen(OperationKey operation, format::Tensor tensor, bool keep,
                   preload::DeviceAnswer why);

  Recording& recording_;
  NodePool<Read> pool_;
  std::atomic<uint32_t> said_{0};  // a bit for each reason
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_NCCL_DEVICE_READS_H_
