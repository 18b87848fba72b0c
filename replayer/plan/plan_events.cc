#include "replayer/plan/plan_events.h"

#include <algorithm>

#include "format/wire/batch_info.h"
#include "format/wire/event_kinds.h"

namespace deja::replayer {
namespace {

// The number of steps that belong to the prologue, with the batch after them. A thread may have
// consumed these when another one is at its first step.
constexpr size_t kPrologueSteps = 8;
// The number of batches that are read after the one with the end of the replay. They are for the
// threads that are ahead of the one that ends it.
constexpr size_t kBatchesBehindEnd = 3;

// What is served once, in its order, and is over when the program is past it.
constexpr uint64_t kPassing = format::KindsThat(format::EventPassing::kPasses);
// What is told apart by the calls around it.
constexpr uint64_t kWithCalls = format::KindsThat(format::EventPassing::kWithCalls);

// The index does not cover what comes from the tail.
bool IsIndexed(const format::BatchInfo& batch) {
  return batch.size != 0;
}

bool ReachesEnd(const format::BatchInfo& batch, const PlannedEnd& end) {
  return std::any_of(batch.comms.begin(), batch.comms.end(), [&](const format::CommRange& range) {
    return range.comm == end.comm && range.last_seq >= end.seq;
  });
}

// The first batch with the end, or past the last one.
size_t FindEnd(const format::BatchList& batches, const PlannedEnd& end) {
  if (end.step) return batches.FindStep(*end.step);
  return batches.Find(
      0, batches.size(),
      [&](const format::BatchBlock& block) { return ReachesEnd(block.all, end); },
      [&](const format::BatchInfo& batch) { return ReachesEnd(batch, end); });
}

}  // namespace

size_t BatchesNeeded(const format::RankReader& reader, const PlannedEnd& end) {
  const format::BatchList& batches = reader.batches();
  if (!end.step && end.comm == 0) return batches.size();
  return std::min(batches.size(), FindEnd(batches, end) + 1 + kBatchesBehindEnd);
}

std::pair<size_t, size_t> BatchesBetween(const format::RankReader& reader,
                                         const format::RecordedCheckpoint& checkpoint) {
  const format::BatchList& batches = reader.batches();
  size_t first = 0;
  for (size_t steps = 0; first < batches.size() && steps < kPrologueSteps; ++first)
    steps += batches[first].steps.size();
  ++first;
  const uint64_t time_ns = checkpoint.at.time_ns;
  const size_t end = batches.Find(
      first, batches.size(),
      [&](const format::BatchBlock& block) { return block.all.last_time_ns >= time_ns; },
      [&](const format::BatchInfo& batch) {
        return !IsIndexed(batch) || batch.last_time_ns >= time_ns;
      });
  return first < end ? std::pair(first, end) : std::pair<size_t, size_t>{};
}

uint64_t KindsNeededBetween(const format::BatchInfo& batch) {
  const uint64_t kinds = format::KindsOf(batch);
  if ((kinds & kWithCalls) != 0) return ~uint64_t{0};
  const bool defines = (kinds & ~kPassing) != 0;
  return defines ? ~kPassing : 0;
}

}  // namespace deja::replayer
