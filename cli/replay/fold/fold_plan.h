// FoldPlan: what replayed ranks compute among themselves, because their recordings have no bytes to
// serve.
//
// Main thread only. It is made before anything is started. What cannot be computed is an error here
// that names the rank and the operation, so a replay does not stop half way.
#ifndef DEJA_CLI_REPLAY_FOLD_FOLD_PLAN_H_
#define DEJA_CLI_REPLAY_FOLD_FOLD_PLAN_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/replay/fold/others_results.h"
#include "common/result.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

struct FoldPlan {
  // The communicators whose ranks are all replayed: hash, and how many ranks (programs use an id
  // again). Empty: nothing is computed.
  std::set<CommKey> comms;
  // By a hash that some of their ranks have instead (CommNames).
  std::map<CommKey, uint64_t> other_names;
  std::set<JobOperation> others_results;
  [[nodiscard]] bool computes() const { return !comms.empty(); }
};

// `asked`: results that were recorded are computed all the same. `ranks`: those to replay.
Result<FoldPlan> PlanFold(std::span<const format::RankReader* const> ranks, bool asked);

// How many CUDA devices the machine of each of `ranks` had: a trace does not say it, so one for
// each rank that it ran.
std::vector<uint32_t> RecordedDevices(std::span<const format::RankReader* const> ranks,
                                      std::span<const format::RankReader* const> job);

// Changes a rank's `environment` for a machine with `here` devices instead of `recorded`. The
// program gets them in turn (DEJA_DEVICES), and CUDA_VISIBLE_DEVICES names no others.
void UseDevices(uint32_t here, uint32_t recorded, std::vector<std::string>& environment);

// Makes the folder in which they meet (replayer/fold/fold.h); its path is for DEJA_FOLD.
Result<std::string> MakeMeetingFolder(const FoldPlan& plan, const std::string& scratch);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_FOLD_FOLD_PLAN_H_
