// Which of a rank's recorded events a plan needs.
//
// A replay from the start needs all of them. One from a checkpoint needs three parts:
// - the prologue: to the first step and a little further, since threads run ahead of each other
// - what comes after the checkpoint
// - between them, only what defines something or is looked up by name: files, connections, threads,
// communicators, answers about the machine
//
// The index says which batches hold such events; the others are not even read. So the start of a
// late replay takes as long after a million steps as after a thousand. A replay that shall end
// somewhere needs nothing that comes well after that.
//
// Pure functions. Any thread.
#ifndef DEJA_REPLAYER_PLAN_PLAN_EVENTS_H_
#define DEJA_REPLAYER_PLAN_PLAN_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "format/reader/checkpoints.h"
#include "format/reader/rank_reader.h"

namespace deja::replayer {

// Where a replay is to end before the recording does.
struct PlannedEnd {
  std::optional<uint64_t> step;  // where it begins
  uint32_t comm = 0;             // number + 1, before its operation `seq`; 0: not before one
  uint64_t seq = 0;
};

// How many batches of a recording, from its beginning, a replay needs that ends there.
size_t BatchesNeeded(const format::RankReader& reader, const PlannedEnd& end);

// The batches [first, second) of a recording that lie wholly between the prologue and the
// checkpoint. Both are 0 if there are none.
std::pair<size_t, size_t> BatchesBetween(const format::RankReader& reader,
                                         const format::RecordedCheckpoint& checkpoint);

// The kinds of events (format::KindBit) that are needed of such a batch, or of several that are
// described together; 0: none.
uint64_t KindsNeededBetween(const format::BatchInfo& batch);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_PLAN_EVENTS_H_
