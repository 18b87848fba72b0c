#include "format/reader/checkpoints.h"

#include <algorithm>
#include <map>
#include <utility>

#include "format/wire/batch_info.h"

namespace deja::format {
namespace {

// Items by the number of their checkpoint.
using Items = std::map<uint64_t, std::vector<CheckpointItem>>;

constexpr uint64_t kKinds = KindBit(EventKind::kSnapshot) | KindBit(EventKind::kCheckpoint);

// The index says nothing about what comes from the tail.
bool MayHaveItems(const BatchInfo& batch) {
  return batch.size == 0 || (KindsOf(batch) & KindBit(EventKind::kSnapshot)) != 0;
}

bool MayHaveCheckpoints(const BatchInfo& batch) {
  return batch.size == 0 || (KindsOf(batch) & KindBit(EventKind::kCheckpoint)) != 0;
}

std::string WhyIncomplete(const RankReader& reader, const RecordedCheckpoint& checkpoint,
                          const Checkpoint& event) {
  if (checkpoint.items.size() != event.items) return "events of it are lost";
  for (const CheckpointItem& item : checkpoint.items) {
    if (item.tensor.count == 0 || reader.PayloadSize(item.tensor.hash)) continue;
    if (item.tensor.payload != static_cast<uint32_t>(PayloadState::kKept))
      return "'" + item.name + "' was not kept while recording";
    if (reader.Dropped(item.tensor.segment)) return "the recording's window has moved on";
    return "the bytes of '" + item.name +
           (reader.left_out().payloads != 0 ? "' were left out when the trace was packed"
                                            : "' are lost");
  }
  return {};
}

// Without its items.
RecordedCheckpoint MakeCheckpoint(const Event& event, const Checkpoint& end) {
  RecordedCheckpoint checkpoint;
  checkpoint.number = end.number;
  checkpoint.step = end.step;
  checkpoint.bytes = end.bytes;
  checkpoint.threads_made = end.threads_made;
  checkpoint.processes_made = end.processes_made;
  for (size_t i = 0; i < std::min(end.descriptors.size(), end.positions.size()); ++i)
    checkpoint.files.emplace_back(end.descriptors[i], end.positions[i]);
  checkpoint.at = event;
  return checkpoint;
}

void AddItem(const Event& event, Items& items) {
  const auto* item = event.As<Snapshot>();
  if (item == nullptr || item->checkpoint == 0) return;
  items[item->checkpoint].push_back({std::string(item->name),
                                     item->tensor,
                                     {item->shape.begin(), item->shape.end()},
                                     item->opaque});
}

// The number of the first checkpoint that ends in or after a batch, and that batch; nothing: there
// is none.
std::optional<std::pair<uint64_t, size_t>> FirstFrom(const RankReader& reader, size_t batch,
                                                     size_t end) {
  constexpr uint64_t kCheckpoint = KindBit(EventKind::kCheckpoint);
  for (; (batch = reader.batches().FindKinds(batch, end, kCheckpoint)) < end; ++batch) {
    const auto cursor = reader.EventsOfBatch(batch);
    if (const Event* event = cursor->NextOf(KindBit(EventKind::kCheckpoint)))
      return std::pair(event->As<Checkpoint>()->number, batch);
  }
  return std::nullopt;
}

}  // namespace

std::vector<RecordedCheckpoint> ReadCheckpoints(const RankReader& reader) {
  std::vector<RecordedCheckpoint> checkpoints;
  Items open;  // without their Checkpoint event so far
  const BatchList& batches = reader.batches();
  for (size_t batch = 0;
       (batch = batches.FindKinds(batch, batches.size(), kKinds)) < batches.size(); ++batch) {
    const auto cursor = reader.EventsOfBatch(batch);
    while (const Event* event = cursor->NextOf(kKinds)) {
      AddItem(*event, open);
      const auto* end = event->As<Checkpoint>();
      if (end == nullptr) continue;
      checkpoints.push_back(MakeCheckpoint(*event, *end));
      RecordedCheckpoint& checkpoint = checkpoints.back();
      checkpoint.items = std::move(open[end->number]);
      open.erase(end->number);
      checkpoint.incomplete = WhyIncomplete(reader, checkpoint, *end);
    }
  }
  return checkpoints;
}

std::optional<RecordedCheckpoint> CheckpointsBackwards::Next() {
  while (left_ > 0 && (found_.empty() || !found_.back().done)) {
    const BatchInfo& info = reader_.batches()[--left_];
    if (MayHaveCheckpoints(info) || (!found_.empty() && MayHaveItems(info))) ReadBatch(left_);
  }
  if (found_.empty()) return std::nullopt;
  Found last = std::move(found_.back());
  found_.pop_back();
  last.checkpoint.incomplete = WhyIncomplete(reader_, last.checkpoint, last.event);
  return std::move(last.checkpoint);
}

void CheckpointsBackwards::ReadBatch(size_t batch) {
  Items items;
  std::vector<Found> found;
  const auto cursor = reader_.EventsOfBatch(batch);
  while (const Event* event = cursor->NextOf(kKinds)) {
    AddItem(*event, items);
    const auto* end = event->As<Checkpoint>();
    if (end == nullptr) continue;
    Found checkpoint;
    checkpoint.checkpoint = MakeCheckpoint(*event, *end);
    checkpoint.event.number = end->number;
    checkpoint.event.items = end->items;
    found.push_back(std::move(checkpoint));
  }
  // Those after a checkpoint of the same thread have all their items now: what stands before it is
  // the earlier one's.
  for (Found& later : found_)
    later.done |= std::any_of(found.begin(), found.end(), [&](const Found& earlier) {
      return earlier.checkpoint.at.thread == later.checkpoint.at.thread;
    });
  found_.insert(found_.begin(), std::make_move_iterator(found.begin()),
                std::make_move_iterator(found.end()));
  for (Found& one : found_) {
    std::vector<CheckpointItem>& before = items[one.event.number];
    std::vector<CheckpointItem>& known = one.checkpoint.items;
    known.insert(known.begin(), std::make_move_iterator(before.begin()),
                 std::make_move_iterator(before.end()));
    before.clear();
    one.done |= known.size() >= one.event.items;
  }
}

std::optional<size_t> BatchesUpToStep(const RankReader& reader, uint64_t step) {
  const BatchList& batches = reader.batches();
  uint64_t last = 0;
  for (size_t i = 0; i < batches.size();) {
    size_t behind = i + 1;
    if (const BatchBlock* block = batches.BlockAt(i, behind)) {
      if (block->steps != 0 && (!block->steps_ascend || block->least_step < last))
        return std::nullopt;
      last = std::max(last, block->greatest_step);
    } else {
      for (const uint64_t begun : batches[i].steps)
        if (begun < std::exchange(last, begun)) return std::nullopt;
    }
    i = behind;
  }
  const size_t behind = batches.Find(
      0, batches.size(),
      [&](const BatchBlock& block) { return block.steps != 0 && block.greatest_step > step; },
      [&](const BatchInfo& batch) { return !batch.steps.empty() && batch.steps.back() > step; });
  return std::min(batches.size(), behind + 1);
}

std::optional<RecordedCheckpoint> FindCheckpoint(const RankReader& reader, uint64_t number) {
  // Numbers go up, as far as one thread takes the checkpoints: the batch is found by halves.
  size_t first = 0;
  size_t end = reader.batches().size();
  while (first < end) {
    const size_t middle = first + (end - first) / 2;
    const auto there = FirstFrom(reader, middle, end);
    if (!there || there->first > number) {
      end = middle;
    } else {
      first = there->second + 1;
    }
  }
  // It ends in the batch before `first`, if anywhere.
  CheckpointsBackwards backwards(reader, first);
  while (auto checkpoint = backwards.Next()) {
    if (checkpoint->number == number) return checkpoint;
    if (checkpoint->number < number) break;
  }
  for (RecordedCheckpoint& checkpoint : ReadCheckpoints(reader))
    if (checkpoint.number == number) return std::move(checkpoint);
  return std::nullopt;
}

}  // namespace deja::format
