#include "cli/replay/bounds/replay_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "cli/output.h"
#include "cli/replay/bounds/bundle_start_check.h"

namespace deja::cli {

Result<std::vector<ReplayUntil>> FindEnds(const ReplayArguments& arguments, format::Trace& trace,
                                          const std::vector<uint32_t>& ranks) {
  std::vector<ReplayUntil> ends;
  if (!arguments.until.any()) return ends;
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank, arguments.attempt));
    DEJA_ASSIGN_OR_RETURN(ReplayUntil end, FindUntil(*reader, arguments.until));
    ends.push_back(std::move(end));
  }
  return ends;
}

Result<SoundStart> ChooseStart(const ReplayArguments& arguments, format::Trace& trace,
                               const std::vector<uint32_t>& ranks,
                               const std::vector<ReplayUntil>& ends) {
  std::optional<uint64_t> step;
  if (arguments.from_step >= 0)
    step = static_cast<uint64_t>(arguments.from_step);
  else if (!ends.empty())
    step = std::min_element(ends.begin(), ends.end(), [](const auto& a, const auto& b) {
             return a.from_step < b.from_step;
           })->from_step;
  if (!step) return SoundStart();
  std::string why;
  DEJA_ASSIGN_OR_RETURN(SoundStart found,
                        FindSoundStart(trace, *step, ranks, arguments.attempt, why));
  for (const DamagedCheckpoint& damaged : found.damaged) Diagnose(damaged.Text());
  if (found.start)
    Diagnose(fmt::format("from the checkpoint at step {}", found.start->step));
  else if (arguments.from_step >= 0)
    Diagnose(fmt::format("from the start: {}", why));
  return found;
}

Status CheckStart(const ReplayArguments& arguments, format::Trace& trace,
                  const std::vector<uint32_t>& ranks, const std::vector<ReplayUntil>& ends) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader,
                          trace.Rank(ranks[i], arguments.attempt));
    const auto missing = FindLeftOutStart(*reader);
    const bool ends_before = missing && !ends.empty() && ends[i].time_ns <= missing->time_ns;
    if (missing && !ends_before)
      return tl::unexpected(CannotStart(trace, ranks[i], arguments.attempt, *missing));
  }
  return {};
}

}  // namespace deja::cli
