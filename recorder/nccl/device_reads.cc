#include "recorder/nccl/device_reads.h"

#include "digest/digest.h"
#include "recorder/core/digests.h"
#include "recorder/nccl/nccl_state.h"

namespace deja::recorder {

using preload::DeviceAnswer;

void DeviceReads::Ask(OperationKey operation, const format::Tensor& tensor, uint64_t bytes,
                      uint64_t stream, bool keep) {
  // Its memory may be gone.
  if (IsGivenUp(operation)) return WriteAborted(operation, tensor);
  Read* read = pool_.Get();
  if (read == nullptr) return WriteUnseen(operation, tensor, keep, DeviceAnswer::kNoMemory);
  *read = {nullptr, this, operation, tensor, keep};
  const bool keeps = keep && recording_.config.level == Level::kFull;
  DeviceAnswer answer = keeps ? AskBytes(*read, bytes, stream) : AskDigest(*read, bytes, stream);
  // Each launch of the graph asks for the same again, so that the read is never given back.
  if (answer == DeviceAnswer::kCapturing && recording_.config.graph_nodes)
    answer = preload::TheDevice().ReadAtLaunches(
        reinterpret_cast<const void*>(tensor.address), bytes, stream, operation.comm,
        [](DeviceAnswer how, std::span<const std::byte> came, void* context) {
          const Read* asked = static_cast<Read*>(context);
          asked->owner->Came(*asked, how, came);
        },
        read, preload::LaunchUse::kLater);
  if (answer == DeviceAnswer::kTaken) return;
  pool_.Put(read);
  WriteUnseen(operation, tensor, keep, answer);
}

void DeviceReads::AskEnd(OperationKey operation, uint64_t stream) {
  if (IsGivenUp(operation)) return;
  Read* read = pool_.Get();
  if (read == nullptr) return WriteEnd(operation);
  *read = {nullptr, this, operation, {}, false};
  const DeviceAnswer answer = preload::TheDevice().Notify(
      stream,
      [](DeviceAnswer how, std::span<const std::byte>, void* context) {
        Read* asked = static_cast<Read*>(context);
        DeviceReads* owner = asked->owner;
        if (how == DeviceAnswer::kTaken && !owner->IsGivenUp(asked->operation))
          owner->WriteEnd(asked->operation);
        owner->pool_.Put(asked);
      },
      read);
  if (answer == DeviceAnswer::kTaken) return;
  pool_.Put(read);
  // Nothing will tell: a replay does not wait there.
  WriteEnd(operation);
}

void DeviceReads::WriteEnd(OperationKey operation) {
  format::CallResults results;
  results.comm = operation.comm;
  results.comm_seq = operation.comm_seq;
  recording_.writer.Write(results);
}

bool DeviceReads::IsGivenUp(OperationKey operation) const {
  return NcclOf(recording_).comms.ByWire(operation.comm)->IsGivenUp(operation.comm_seq);
}

void DeviceReads::Finish(Read* read) {
  NcclOf(recording_)
      .comms.ByWire(read->operation.comm)
      ->under_way.fetch_sub(1, std::memory_order_relaxed);
  pool_.Put(read);
}

DeviceAnswer DeviceReads::AskBytes(Read& read, uint64_t bytes, uint64_t stream) {
  std::atomic<uint32_t>& under_way =
      NcclOf(recording_).comms.ByWire(read.operation.comm)->under_way;
  under_way.fetch_add(1, std::memory_order_relaxed);
  const DeviceAnswer answer = preload::TheDevice().Read(
      reinterpret_cast<const void*>(read.tensor.address), bytes, stream,
      [](DeviceAnswer how, std::span<const std::byte> came, void* context) {
        Read* asked = static_cast<Read*>(context);
        asked->owner->Came(*asked, how, came);
        asked->owner->Finish(asked);
      },
      &read);
  if (answer != DeviceAnswer::kTaken) under_way.fetch_sub(1, std::memory_order_relaxed);
  return answer;
}

DeviceAnswer DeviceReads::AskDigest(Read& read, uint64_t bytes, uint64_t stream) {
  std::atomic<uint32_t>& under_way =
      NcclOf(recording_).comms.ByWire(read.operation.comm)->under_way;
  under_way.fetch_add(1, std::memory_order_relaxed);
  const DeviceAnswer answer = preload::TheDevice().Digest(
      reinterpret_cast<const void*>(read.tensor.address), bytes, read.tensor.dtype, stream,
      [](DeviceAnswer how, const digest::TensorDigest& digest, void* context) {
        Read* asked = static_cast<Read*>(context);
        asked->owner->CameDigested(*asked, how, digest);
        asked->owner->Finish(asked);
      },
      &read);
  if (answer != DeviceAnswer::kTaken) under_way.fetch_sub(1, std::memory_order_relaxed);
  return answer;
}

void DeviceReads::CameDigested(const Read& read, DeviceAnswer how,
                               const digest::TensorDigest& digest) {
  if (IsGivenUp(read.operation)) return WriteAborted(read.operation, read.tensor);
  if (how != DeviceAnswer::kTaken) return WriteUnseen(read.operation, read.tensor, read.keep, how);
  format::Tensor tensor = read.tensor;
  tensor.hash = digest.hash;
  tensor.stats = digest.stats;
  Write(read.operation, tensor);
}

void DeviceReads::Came(const Read& read, DeviceAnswer how, std::span<const std::byte> bytes) {
  if (IsGivenUp(read.operation)) return WriteAborted(read.operation, read.tensor);
  if (how != DeviceAnswer::kTaken) return WriteUnseen(read.operation, read.tensor, read.keep, how);
  format::Tensor tensor = read.tensor;
  FillDigest(recording_, bytes, read.keep, tensor, read.operation.series);
  Write(read.operation, tensor);
}

void DeviceReads::Write(OperationKey operation, const format::Tensor& tensor) {
  format::CallResults results;
  results.comm = operation.comm;
  results.comm_seq = operation.comm_seq;
  results.outputs.push_back(tensor);
  recording_.writer.Write(results);
}

void DeviceReads::WriteUnseen(OperationKey operation, format::Tensor tensor, bool keep,
                              DeviceAnswer why) {
  SayUnseen(why);
  if (keep && recording_.config.level == Level::kFull)
    tensor.payload = static_cast<uint32_t>(format::PayloadState::kDropped);
  Write(operation, tensor);
}

void DeviceReads::WriteAborted(OperationKey operation, format::Tensor tensor) {
  tensor.payload = static_cast<uint32_t>(format::PayloadState::kAborted);
  Write(operation, tensor);
}

void DeviceReads::SayUnseen(DeviceAnswer why) {
  const uint32_t bit = 1u << static_cast<uint32_t>(why);
  if ((said_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  format::Degraded degraded;
  switch (why) {
    case DeviceAnswer::kCapturing:
      degraded.reason =
          recording_.config.graph_nodes
              ? "the data of calls captured into a CUDA graph that cannot have nodes of Deja's"
              : "the data of calls captured into a CUDA graph, which --cuda-graphs=leave leaves as "
                "it is";
      break;
    case DeviceAnswer::kInBody:
      degraded.reason =
          "the data of calls captured into the body of a conditional node of a CUDA graph, which "
          "cannot have nodes of Deja's";
      break;
    case DeviceAnswer::kOverlapped:
      degraded.reason = "the data of a captured call whose launches ran at the same time";
      break;
    case DeviceAnswer::kNoMemory:
      degraded.reason = "there was no pinned memory for the contents of some device buffers";
      break;
    default:
      degraded.reason = "the CUDA driver did not give the contents of some device buffers";
      break;
  }
  degraded.payloads_lost = 1;
  recording_.writer.Write(degraded);
}

}  // namespace deja::recorder
