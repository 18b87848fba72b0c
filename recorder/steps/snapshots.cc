// What the program says about itself through include/deja.h.
#include <functional>
#include <string_view>

#include "digest/digest.h"
#include "format/tensor/payload_series.h"
#include "preload/engine/snapshot_event.h"
#include "preload/process/guard.h"
#include "recorder/core/digests.h"
#include "recorder/nccl/nccl_state.h"
#include "recorder/steps/step_recorder.h"
#include "recorder/steps/step_state.h"

namespace deja::recorder {
namespace {

constexpr size_t kMaxNote = 16 << 10;

// How the names of states of random number generators begin.
constexpr std::string_view kGenerator = "rng/";

}  // namespace

uint64_t StepRecorder::OnStep(uint64_t step) {
  ErrnoKeeper keep;
  Recording* rec = nullptr;
  uint64_t number = 0;
  {
    preload::Guard guard;
    rec = recorder_.Active();
    if (rec == nullptr) return step;
    rec->writer.Write(format::Step{step});
    number = rec->steps.fetch_add(1, std::memory_order_relaxed) + 1;
    if (format::RankLog* log = rec->log()) log->BeginStep(number);
  }
  if (StepsOf(*rec).checkpoints.IsDue(rec->config.checkpoint_every, number))
    TakeCheckpoint(*rec, step, number);
  return step;
}

void StepRecorder::OnCheckpointWanted() {
  const preload::Guard guard;
  if (Recording* rec = recorder_.Active())
    StepsOf(*rec).checkpoints.wanted.store(true, std::memory_order_relaxed);
}

void StepRecorder::OnNote(std::string_view text) {
  ErrnoKeeper keep;
  Recording* rec = recorder_.Active();
  if (rec != nullptr) rec->writer.Write(format::Note{text.substr(0, kMaxNote)});
}

void StepRecorder::OnUpdate(const format::OptimizerUpdate& update) {
  ErrnoKeeper keep;
  Recording* rec = recorder_.Active();
  if (rec != nullptr) rec->writer.Write(update);
}

void StepRecorder::OnSnapshot(const preload::SnapshotCall& call) {
  ErrnoKeeper keep;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  format::Snapshot snapshot;
  preload::DescribeSnapshot(call, snapshot);
  preload::LookForDevice();
  // States of generators are compared at every level, and no user looks into them.
  if (call.opaque && call.name.substr(0, kGenerator.size()) == kGenerator)
    snapshot.tensor.hash =
        digest::HashBytes({static_cast<const std::byte*>(call.data), call.bytes});
  // The stream that device memory belongs to is not known: its contents are not recorded.
  else if (DeviceReads::Needed(call.data))
    NcclOf(*rec).device_reads.SayUnseen(preload::DeviceAnswer::kFailed);
  else
    DigestNow(*rec, {.data = call.data, .bytes = call.bytes}, true, snapshot.tensor,
              format::SeriesNumber(std::hash<std::string_view>()(snapshot.name)));
  snapshot.stack = CaptureStack(rec->writer);
  rec->writer.Write(snapshot);
  rec->RelieveStaging();
}

}  // namespace deja::recorder
