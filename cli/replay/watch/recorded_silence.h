// LongestSilence: for how long a recorded rank, with its children, did nothing that a replay counts
// (common/os/activity_count.h). A replay that is silent for longer may hang.
//
// Reads all events of these recordings; main thread, as format::Trace.
#ifndef DEJA_CLI_REPLAY_WATCH_RECORDED_SILENCE_H_
#define DEJA_CLI_REPLAY_WATCH_RECORDED_SILENCE_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"

namespace deja::cli {

// To the second, rounded up. Recordings that cannot be read add nothing, nor does the time after
// the last event. `attempt`: as of Trace::Rank.
std::chrono::seconds LongestSilence(format::Trace& trace, uint32_t rank, int attempt);
// The same of these processes, at least one, which all ran on one machine.
std::chrono::seconds LongestSilence(const std::vector<const format::RankReader*>& processes);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_RECORDED_SILENCE_H_
