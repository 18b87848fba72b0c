#include "format/checkpoints.h"

#include <algorithm>
#include <map>

#include "format/batch_info.h"

namespace deja::format {
namespace {

// Items without their Checkpoint event so far, by its number.
using OpenItems = std::map<uint64_t, std::vector<CheckpointItem>>;

std::string WhyIncomplete(const RankReader& reader, const RecordedCheckpoint& checkpoint,
                          const Checkpoint& event) {
  if (checkpoint.items.size() != event.items) return "events of it are lost";
  for (const CheckpointItem& item : checkpoint.items) {
    if (item.tensor.count == 0 || reader.PayloadSize(item.tensor.hash)) continue;
    if (item.tensor.payload != static_cast<uint32_t>(PayloadState::kKept))
      return "'" + item.name + "' was not kept while recording";
    return reader.Dropped(item.tensor.segment) ? "the recording's window has moved on"
                                               : "the bytes of '" + item.name + "' are lost";
  }
  return {};
}

void Close(const RankReader& reader, const Event& event, const Checkpoint& end, OpenItems& open,
           std::vector<RecordedCheckpoint>& out) {
  RecordedCheckpoint checkpoint;
  checkpoint.number = end.number;
  checkpoint.step = end.step;
  checkpoint.bytes = end.bytes;
  checkpoint.threads_made = end.threads_made;
  checkpoint.processes_made = end.processes_made;
  for (size_t i = 0; i < std::min(end.descriptors.size(), end.positions.size()); ++i)
    checkpoint.files.emplace_back(end.descriptors[i], end.positions[i]);
  checkpoint.items = std::move(open[end.number]);
  open.erase(end.number);
  checkpoint.at = event;
  checkpoint.incomplete = WhyIncomplete(reader, checkpoint, end);
  out.push_back(std::move(checkpoint));
}

}  // namespace

std::vector<RecordedCheckpoint> ReadCheckpoints(const RankReader& reader) {
  constexpr uint64_t kKinds = KindBit(EventKind::kSnapshot) | KindBit(EventKind::kCheckpoint);
  constexpr uint32_t kBatchKinds =
      uint32_t{1} << static_cast<uint32_t>(EventKind::kSnapshot) | uint32_t{1} << kLastKindBit;
  std::vector<RecordedCheckpoint> checkpoints;
  OpenItems open;
  for (size_t batch = 0; batch < reader.batches().size(); ++batch) {
    // Of what comes from the tail nothing is known.
    const BatchInfo& info = reader.batches()[batch];
    if (info.size != 0 && (info.kinds & kBatchKinds) == 0) continue;
    const auto cursor = reader.EventsOfBatch(batch);
    while (const Event* event = cursor->NextOf(kKinds)) {
      if (const auto* item = event->As<Snapshot>(); item != nullptr && item->checkpoint != 0) {
        open[item->checkpoint].push_back({std::string(item->name),
                                          item->tensor,
                                          {item->shape.begin(), item->shape.end()},
                                          item->opaque});
      } else if (const auto* end = event->As<Checkpoint>()) {
        Close(reader, *event, *end, open, checkpoints);
      }
    }
  }
  return checkpoints;
}

}  // namespace deja::format
