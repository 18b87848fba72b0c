// Whether a smaller copy of a trace (deja pack) has what a replay from its start needs, and what to
// do if it does not.
//
// Pure functions; main thread only.
#ifndef DEJA_CLI_REPLAY_BOUNDS_BUNDLE_START_CHECK_H_
#define DEJA_CLI_REPLAY_BOUNDS_BUNDLE_START_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"

namespace deja::cli {

// What a replay of the rank from its start reaches and cannot be served.
struct LeftOutStart {
  uint64_t step = 0;  // the first one with results of collectives
  uint64_t time_ns = 0;
  std::string what;  // was left out: "those outside of steps 20 and later"
};

// Nothing: results of the first step that has some are there, or were not left out by a pack.
std::optional<LeftOutStart> FindLeftOutStart(const format::RankReader& reader);

// Why a replay of the rank from the start makes no sense, and where it can start. `trace`: of the
// reader.
Error CannotStart(format::Trace& trace, uint32_t rank, int attempt, const LeftOutStart& start);

// From where a pack can be replayed.
struct PackStart {
  std::string text;     // for the user; empty: from the start
  bool replays = true;  // somewhere
};

// How a pack of steps [first, last] of `trace` can be replayed: from where, or what to pack
// instead. `ranks`: those whose payloads the pack has; empty: all.
Result<PackStart> HowAPackStarts(format::Trace& trace, std::pair<uint64_t, uint64_t> steps,
                                 std::vector<uint32_t> ranks);

// The same of a bundle from which payloads of steps were left out because they did not fit.
Result<PackStart> HowABundleStarts(format::Trace& bundle);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_BOUNDS_BUNDLE_START_CHECK_H_
