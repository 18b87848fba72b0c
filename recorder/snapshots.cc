// What the program says about itself through include/deja.h.
#include <algorithm>
#include <functional>
#include <string_view>

#include "format/payload_series.h"
#include "preload/digest.h"
#include "preload/guard.h"
#include "recorder/recorder_engine.h"

namespace deja::recorder {
namespace {

constexpr size_t kMaxNote = 16 << 10;
constexpr size_t kMaxName = 1 << 10;

// How the names of states of random number generators begin.
constexpr std::string_view kGenerator = "rng/";

}  // namespace

void Describe(const preload::SnapshotCall& call, format::Snapshot& snapshot) {
  snapshot.name = call.name.substr(0, kMaxName);
  snapshot.opaque = call.opaque;
  snapshot.tensor.dtype = call.dtype;
  snapshot.tensor.address = reinterpret_cast<uint64_t>(call.data);
  snapshot.tensor.count = call.opaque ? call.bytes : 1;
  for (int64_t extent : call.shape) {
    snapshot.shape.push_back(static_cast<uint64_t>(std::max<int64_t>(extent, 0)));
    snapshot.tensor.count *= static_cast<uint64_t>(std::max<int64_t>(extent, 0));
  }
}

uint64_t RecorderEngine::OnStep(uint64_t step) {
  ErrnoKeeper keep;
  Recording* rec = nullptr;
  uint64_t number = 0;
  {
    preload::Guard guard;
    rec = Active();
    if (rec == nullptr) return step;
    rec->writer.Write(format::Step{step});
    number = rec->steps.fetch_add(1, std::memory_order_relaxed) + 1;
    if (format::RankLog* log = rec->log()) log->BeginStep(number);
  }
  if (rec->checkpoints.IsDue(rec->config.checkpoint_every, number))
    TakeCheckpoint(*rec, step, number);
  return step;
}

void RecorderEngine::OnCheckpointWanted() {
  const preload::Guard guard;
  if (Recording* rec = Active()) rec->checkpoints.wanted.store(true, std::memory_order_relaxed);
}

void RecorderEngine::OnNote(std::string_view text) {
  ErrnoKeeper keep;
  Recording* rec = Active();
  if (rec != nullptr) rec->writer.Write(format::Note{text.substr(0, kMaxNote)});
}

void RecorderEngine::OnSnapshot(const preload::SnapshotCall& call) {
  ErrnoKeeper keep;
  Recording* rec = Active();
  if (rec == nullptr) return;
  format::Snapshot snapshot;
  Describe(call, snapshot);
  preload::LookForDevice();
  // States of generators are compared at every level, and are not what anybody would look into.
  if (call.opaque && call.name.substr(0, kGenerator.size()) == kGenerator)
    snapshot.tensor.hash =
        preload::HashBytes({static_cast<const std::byte*>(call.data), call.bytes});
  // Of device memory nobody says which stream it belongs to: its contents are not recorded.
  else if (DeviceReads::Needed(call.data))
    rec->device_reads.SayUnseen(preload::DeviceAnswer::kFailed);
  else
    DigestNow(*rec, {.data = call.data, .bytes = call.bytes}, true, snapshot.tensor,
              format::SeriesNumber(std::hash<std::string_view>()(snapshot.name)));
  snapshot.stack = CaptureStack(rec->writer);
  rec->writer.Write(snapshot);
  rec->RelieveStaging();
}

}  // namespace deja::recorder
