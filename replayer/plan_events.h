// Which of a rank's recorded events a plan needs.
//
// A replay from the start needs all of them. One from a checkpoint needs the prologue (to the first
// step and a little further, since threads run ahead of each other) and what comes after the
// checkpoint; of what lies between, only what defines something or is looked up by name: files,
// connections, threads, communicators, answers about the machine. The index says which batches hold
// such events; the others are not even read, so that the start of a late replay takes as long after
// a million steps as after a thousand.
//
// Pure functions. Any thread.
#ifndef DEJA_REPLAYER_PLAN_EVENTS_H_
#define DEJA_REPLAYER_PLAN_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "format/checkpoints.h"
#include "format/rank_reader.h"

namespace deja::replayer {

// The batches [first, second) of a recording that lie wholly between the prologue and the
// checkpoint. Both are 0 if there are none.
std::pair<size_t, size_t> BatchesBetween(const format::RankReader& reader,
                                         const format::RecordedCheckpoint& checkpoint);

// The kinds of events (format::KindBit) that are needed of such a batch; 0: none.
uint64_t KindsNeededBetween(const format::BatchInfo& batch);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_EVENTS_H_
