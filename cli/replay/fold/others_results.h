// Collectives that a rank had begun when it ended, and whose results others have: it had handed out
// its data. A replay that computes takes part in them, though the rank never saw them end.
//
// Main thread only; reads what is near the end of each communicator's operations, of ranks that did
// not end well.
#ifndef DEJA_CLI_REPLAY_FOLD_OTHERS_RESULTS_H_
#define DEJA_CLI_REPLAY_FOLD_OTHERS_RESULTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "format/reader/rank_reader.h"

namespace deja::cli {

using CommKey = std::pair<uint64_t, uint32_t>;                  // hash and ranks
using RankComms = std::map<uint32_t, CommKey>;                  // of one rank, by number + 1
using JobOperation = std::tuple<uint64_t, uint32_t, uint64_t>;  // hash, ranks, number on it

// `comms`: of each of `ranks`.
std::set<JobOperation> FindOthersResults(std::span<const format::RankReader* const> ranks,
                                         std::span<const RankComms> comms);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_FOLD_OTHERS_RESULTS_H_
