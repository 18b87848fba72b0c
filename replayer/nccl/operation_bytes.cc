#include "replayer/nccl/operation_bytes.h"

#include <optional>
#include <vector>

#include "api/nccl_table.h"
#include "digest/digest.h"
#include "digest/elements.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"

namespace deja::replayer {

using api::NcclApi;
using preload::BufferUse;
using preload::Call;

namespace {

// Bytes of a recorded input, if they can be had: kept as a payload of their own, or a part of what
// the operation produced.
std::optional<std::vector<std::byte>> RecordedBytes(Session& session,
                                                    const LiveOperation& operation, uint64_t launch,
                                                    const format::Tensor& input) {
  const uint64_t bytes = operation.input.bytes;
  if (auto kept = session.payloads().Read(input.hash, bytes)) return kept;
  const auto output = session.plan().ProducedAt(operation.index, launch);
  if (!output) return std::nullopt;
  auto produced = session.payloads().Read(output->hash, operation.output.bytes);
  if (!produced) return std::nullopt;
  // An all-gather gives every rank's input back, a broadcast the root's; of other operations it is
  // true only when there is one rank. The hash decides.
  uint64_t offset = 0;
  const auto api = static_cast<NcclApi>(session.plan().calls()[operation.index].api);
  if (api == NcclApi::ncclAllGather || api == NcclApi::ncclAllGatherConfig ||
      api == NcclApi::ncclGather || api == NcclApi::ncclGatherConfig)
    offset = bytes * operation.comm->rank();
  if (offset + bytes > produced->size()) return std::nullopt;
  std::vector<std::byte> part(produced->begin() + static_cast<std::ptrdiff_t>(offset),
                              produced->begin() + static_cast<std::ptrdiff_t>(offset + bytes));
  if (digest::HashBytes(part) != input.hash) return std::nullopt;
  return part;
}

// 1 equal, 2 different. `bytes_of_recorded`: the recorded bytes, if they can be had.
template <typename RecordedOf>
uint32_t Compare(Session& session, ThreadState& thread, const LiveOperation& operation,
                 DivergenceKind kind, uint64_t launch, const format::Tensor& seen,
                 std::span<const std::byte> live, RecordedOf bytes_of_recorded) {
  const RecordedCall& recorded = session.plan().calls()[operation.index];
  const Hash128 hash = digest::HashBytes(live);
  const bool equal = hash == seen.hash;
  session.divergences().CountCompared(equal);
  if (equal) return 1;
  const BufferUse& used = kind == DivergenceKind::kResult ? operation.output : operation.input;
  Divergence divergence = session.divergences().New(kind);
  Locate(divergence, operation.call, operation.comm, recorded.comm_seq);
  if (operation.captured) SetLaunch(divergence, launch);
  divergence.tensor = used.arg >= 0 ? operation.call.info->params[used.arg].name : "input";
  divergence.dtype = used.dtype;
  divergence.count = used.elements;
  divergence.recorded_hash = seen.hash;
  divergence.live_hash = hash;
  divergence.recorded_stats = seen.stats;
  divergence.live_stats = digest::ComputeStats(live, used.dtype);
  if (auto bytes = bytes_of_recorded()) {
    divergence.has_recorded_bytes = true;
    divergence.element = digest::CompareElements(*bytes, live, used.dtype);
  }
  session.divergences().Diverge(thread, std::move(divergence), recorded.stack);
  return 2;
}

std::string LaunchText(const LiveOperation& operation, uint64_t launch) {
  return operation.captured ? " at launch " + std::to_string(launch + 1) + " of its graph" : "";
}

}  // namespace

std::string OperationText(const RecordedCall& call) {
  return ApiText(call.api) + " #" + std::to_string(call.comm_seq) + " of comm " +
         std::to_string(call.comm - 1);
}

void Locate(Divergence& divergence, const Call& call, const ServedComm* comm, uint64_t seq) {
  divergence.api = ShortName(call.info->name);
  if (comm == nullptr) return;
  divergence.comm = comm->number();
  divergence.comm_rank = comm->rank();
  divergence.comm_nranks = comm->nranks();
  divergence.comm_seq = seq;
}

void SetLaunch(Divergence& divergence, uint64_t launch) {
  divergence.launch = launch + 1;
  divergence.thread.clear();  // the driver's
}

uint32_t CompareBytes(Session& session, ThreadState& thread, const LiveOperation& operation,
                      uint64_t launch, std::span<const std::byte> live) {
  const auto seen = session.plan().ReadAt(operation.index, launch);
  if (!seen || seen->hash.IsZero()) return 0;
  auto recorded = [&] { return RecordedBytes(session, operation, launch, *seen); };
  return Compare(session, thread, operation, DivergenceKind::kInput, launch, *seen, live, recorded);
}

uint32_t CompareResult(Session& session, ThreadState& thread, const LiveOperation& operation,
                       uint64_t launch, std::span<const std::byte> live) {
  const auto seen = session.plan().ProducedAt(operation.index, launch);
  if (!seen || seen->hash.IsZero()) return 0;
  auto recorded = [&] { return session.payloads().Read(seen->hash, live.size()); };
  return Compare(session, thread, operation, DivergenceKind::kResult, launch, *seen, live,
                 recorded);
}

void FailResult(Session& session, ThreadState& thread, const LiveOperation& operation,
                uint64_t launch, const format::Tensor& recorded, const Error& why) {
  const RecordedCall& call = session.plan().calls()[operation.index];
  const std::string result =
      "the result of " + OperationText(call) + LaunchText(operation, launch) + " ";
  const bool dropped = recorded.payload == static_cast<uint32_t>(format::PayloadState::kDropped);
  std::string message;
  if (session.payloads().Dropped(recorded.segment))
    message = std::string("is not kept: ") + kNotInWindow;
  else if (dropped && recorded.hash.IsZero())
    message =
        "could not be seen while recording (`deja info` says why), so the replay cannot go on "
        "after it";
  else if (dropped)
    message =
        "was dropped while recording (--on-pressure=drop-payload, or the disk was full), so the "
        "replay cannot go on after it";
  else
    message = "cannot be read: " + why.message;
  FailReplay(session, thread, result + message, call.stack);
}

}  // namespace deja::replayer
