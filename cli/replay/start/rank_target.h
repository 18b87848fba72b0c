// How a replay of one rank is started: by itself, or, where the rank is a forked child, as the
// process that it was before.
#ifndef DEJA_CLI_REPLAY_START_RANK_TARGET_H_
#define DEJA_CLI_REPLAY_START_RANK_TARGET_H_

#include <cstdint>
#include <string>

#include "cli/replay/start/replay_launch.h"
#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

// `attempt`: as of Trace::Rank. `scratch`: an existing empty folder, which gets the list of the
// recorded processes (replayer/forks/children.h).
Result<ReplayTarget> PrepareRank(format::Trace& trace, uint32_t rank, int attempt,
                                 const std::string& scratch, const ReplayOptions& options);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_RANK_TARGET_H_
