// The trace that a replay leaves of its own (`deja replay --out`).
//
// Main thread only.
#ifndef DEJA_CLI_REPLAY_WATCH_REPLAY_TRACE_H_
#define DEJA_CLI_REPLAY_WATCH_REPLAY_TRACE_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/record/trace_claim.h"
#include "cli/replay/watch/replay_processes.h"
#include "common/result.h"

namespace deja::cli {

// `path`: as the user named it; empty: none is wanted, and nothing is returned.
Result<std::optional<TraceClaim>> ClaimOut(const std::string& path);

// Adds to a rank's `environment` what its program needs of it. `trace`: the recording, as the user
// named it.
void AddOut(const TraceClaim& claim, const std::string& trace,
            std::vector<std::string>& environment);

// What the programs have left of their own traces is completed. False: there is none.
bool FinishTrace(TraceClaim& claim, const std::vector<Replayed>& replays);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_REPLAY_TRACE_H_
