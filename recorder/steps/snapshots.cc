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

uint32_t SeriesOf(const format::Snapshot& snapshot) {
  return format::SeriesNumber(std::hash<std::string_view>()(snapshot.name));
}

// The tensor is not in the processor's memory. At level digest the device digests it.
void DigestShown(Recording& rec, const preload::SnapshotCall& call, format::Snapshot& snapshot) {
  if (rec.config.level == Level::kOrder || call.bytes == 0) return;
  if (rec.config.level == Level::kDigest) {
    constexpr uint64_t kLegacyDefaultStream = 0;
    if (const auto digest = preload::DigestAndWait(call.data, call.bytes, snapshot.tensor.dtype,
                                                   kLegacyDefaultStream)) {
      snapshot.tensor.hash = digest->hash;
      snapshot.tensor.stats = digest->stats;
      return;
    }
  }
  if (const auto bytes = preload::ReadShown(call.data, call.bytes))
    DigestNow(rec, {.data = bytes->data(), .bytes = call.bytes}, true, snapshot.tensor,
              SeriesOf(snapshot));
  else
    NcclOf(rec).device_reads.SayUnseen(preload::DeviceAnswer::kFailed);
}

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
  else if (DeviceReads::Needed(call.data))
    DigestShown(*rec, call, snapshot);
  else
    DigestNow(*rec, {.data = call.data, .bytes = call.bytes}, true, snapshot.tensor,
              SeriesOf(snapshot));
  snapshot.stack = CaptureStack(rec->writer);
  rec->writer.Write(snapshot);
  rec->RelieveStaging();
}

}  // namespace deja::recorder
