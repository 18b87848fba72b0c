#include "cli/replay_start.h"

#include <fmt/format.h>

#include <set>

#include "format/checkpoints.h"

namespace deja::cli {

Result<std::vector<ReplayStart>> ReplayStarts(format::Trace& trace, uint64_t step, int attempt,
                                              std::string& why) {
  std::set<uint32_t> ranks;
  for (const format::RankFolder& folder : trace.ranks()) ranks.insert(folder.rank);
  std::map<uint64_t, std::map<uint32_t, uint64_t>> by_step;  // numbers by rank
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank, attempt));
    uint64_t complete = 0;
    std::string incomplete;
    for (const format::RecordedCheckpoint& checkpoint : format::ReadCheckpoints(*reader)) {
      if (checkpoint.step > step) continue;
      if (checkpoint.complete()) {
        by_step[checkpoint.step][rank] = checkpoint.number;
        ++complete;
      } else {
        incomplete = fmt::format("; of its checkpoint at step {}, {}", checkpoint.step,
                                 checkpoint.incomplete);
      }
    }
    if (complete == 0 && why.empty())
      why =
          fmt::format("rank {} has no complete checkpoint up to step {}{}", rank, step, incomplete);
  }
  std::vector<ReplayStart> starts;
  for (const auto& [at, numbers] : by_step)
    if (numbers.size() == ranks.size()) starts.push_back({at, numbers});
  if (starts.empty() && why.empty())
    why = fmt::format("the ranks have no checkpoint in common up to step {}", step);
  return starts;
}

Result<std::optional<ReplayStart>> FindReplayStart(format::Trace& trace, uint64_t step, int attempt,
                                                   std::string& why) {
  DEJA_ASSIGN_OR_RETURN(const std::vector<ReplayStart> starts,
                        ReplayStarts(trace, step, attempt, why));
  if (starts.empty()) return std::nullopt;
  return starts.back();
}

}  // namespace deja::cli
