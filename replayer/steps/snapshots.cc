// deja_tensor and deja_state: compared like the input of a collective, in order on their thread.
#include <optional>
#include <span>
#include <vector>

#include "digest/digest.h"
#include "preload/cuda/device.h"
#include "replayer/core/ending.h"
#include "replayer/nccl/served_comm.h"
#include "replayer/report/live_trace.h"
#include "replayer/steps/serve_steps.h"

namespace deja::replayer {

using preload::SnapshotCall;

namespace {

const RecordedSnapshot* NextSnapshot(Session& session, ThreadState& thread) {
  if (thread.recorded == kNone) return nullptr;
  const auto& queue = session.plan().threads()[thread.recorded].snapshots;
  if (thread.next_snapshot >= queue.size()) return nullptr;
  session.progress().Consume(thread.recorded);
  return &session.plan().snapshots()[queue[thread.next_snapshot++]];
}

// `memory`: the program's own, of which `call` may have a copy.
void Compare(Session& session, ThreadState& thread, const SnapshotCall& call, const void* memory,
             const RecordedSnapshot& recorded) {
  const std::string name(call.name);
  if (recorded.name != call.name) {
    Divergence divergence = session.divergences().New(DivergenceKind::kSnapshot);
    divergence.api = call.opaque ? "deja_state" : "deja_tensor";
    divergence.what =
        "the program shows '" + name + "', the recorded run showed '" + recorded.name + "' here";
    divergence.tensor = name;
    session.divergences().Diverge(thread, std::move(divergence), recorded.stack);
    return;
  }
  if (recorded.tensor.hash.IsZero()) return;
  if (!preload::IsHostMemory(call.data)) return;
  const std::span<const std::byte> live{static_cast<const std::byte*>(call.data), call.bytes};
  const Hash128 hash = digest::HashBytes(live);
  const bool equal = hash == recorded.tensor.hash;
  session.divergences().CountCompared(equal);
  session.stops().RememberSnapshot(recorded, memory, equal ? 1 : 2);
  if (equal) return;
  Divergence divergence = session.divergences().New(DivergenceKind::kSnapshot);
  divergence.api = call.opaque ? "deja_state" : "deja_tensor";
  divergence.tensor = name;
  divergence.dtype = call.dtype;
  const uint32_t size = std::max(digest::ElementSize(call.dtype), 1u);
  divergence.count = call.bytes / size;
  divergence.recorded_hash = recorded.tensor.hash;
  divergence.live_hash = hash;
  divergence.recorded_stats = recorded.tensor.stats;
  divergence.live_stats = digest::ComputeStats(live, call.dtype);
  constexpr std::string_view kGenerator = "rng/";
  if (call.name.substr(0, kGenerator.size()) == kGenerator) {
    divergence.what = "RNG state of " + name.substr(kGenerator.size()) + " diverges" +
                      (divergence.has_step ? " at step " + std::to_string(divergence.step) : "") +
                      ": more or fewer numbers were drawn than in the recorded run, or it was "
                      "seeded otherwise";
  } else if (recorded.tensor.count != divergence.count || recorded.tensor.dtype != call.dtype) {
    divergence.what = "snapshot " + name + " has " + std::to_string(divergence.count) +
                      " elements of type " + std::to_string(call.dtype) + ", recorded " +
                      std::to_string(recorded.tensor.count) + " of type " +
                      std::to_string(recorded.tensor.dtype);
  } else if (auto bytes = session.payloads().Read(recorded.tensor.hash, call.bytes)) {
    divergence.has_recorded_bytes = true;
    divergence.element = digest::CompareElements(*bytes, live, call.dtype);
  }
  session.divergences().Diverge(thread, std::move(divergence), recorded.stack);
}

}  // namespace

void ServeSnapshot(Session& session, ThreadState& thread, const SnapshotCall& shown) {
  SnapshotCall call = shown;
  std::optional<std::vector<std::byte>> copy;
  // Only the program can let held streams go on, and perhaps not before this call returns.
  if (!preload::IsHostMemory(shown.data) && !ServedComm::AnyHeld())
    copy = preload::ReadShown(shown.data, shown.bytes);
  if (copy) call.data = copy->data();
  session.progress().CountActivity();
  const RecordedSnapshot* recorded = NextSnapshot(session, thread);
  if (recorded == nullptr &&
      session.progress().Classify(thread) == Progress::Missing::kEndOfRecording)
    return;
  if (LiveTrace* live = session.live_trace()) live->Snapshot(call, recorded);
  if (recorded == nullptr) {
    Divergence divergence = session.divergences().New(DivergenceKind::kSnapshot);
    divergence.api = call.opaque ? "deja_state" : "deja_tensor";
    divergence.tensor = std::string(call.name);
    divergence.what = "the program shows '" + std::string(call.name) +
                      "', and the recording has no further snapshot on this thread";
    session.divergences().Diverge(thread, std::move(divergence), 0);
    return;
  }
  Compare(session, thread, call, shown.data, *recorded);
  if (session.progress().remaining() == 0) OnAllEventsMade(session);
}

}  // namespace deja::replayer
