#include "cli/replay/watch/replay_trace.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/output.h"
#include "cli/own_variables.h"
#include "cli/record/trace_sweep.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<std::optional<TraceClaim>> ClaimOut(const std::string& path) {
  std::optional<TraceClaim> none;
  if (path.empty()) return none;
  std::error_code error;
  std::string out = fs::absolute(path, error).lexically_normal().string();
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  if (fs::exists(out, error))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("replaying: --out {}: it exists already; give another", out));
  DEJA_ASSIGN_OR_RETURN(TraceClaim claim, TraceClaim::Make(out, false));
  return std::optional<TraceClaim>(std::move(claim));
}

void AddOut(const TraceClaim& claim, const std::string& trace,
            std::vector<std::string>& environment) {
  std::error_code error;
  environment.push_back(Entry(env::kOut, claim.directory()));
  environment.push_back(Entry(env::kJobId, claim.job_id()));
  environment.push_back(Entry(env::kRecording, fs::absolute(trace, error).string()));
}

bool FinishTrace(TraceClaim& claim, const std::vector<Replayed>& replays) {
  std::vector<ProcessEnd> ends;
  for (const Replayed& replay : replays) {
    ProcessEnd end;
    end.pid = replay.pid;
    if (WIFSIGNALED(replay.status))
      end.signal = WTERMSIG(replay.status);
    else
      end.exit_code = WEXITSTATUS(replay.status);
    ends.push_back(end);
  }
  const std::vector<SweptRank> ranks = SweepTrace(claim.directory(), ends, true);
  for (const SweptRank& rank : ranks)
    if (!rank.error.empty()) Diagnose(fmt::format("rank {}: {}", rank.rank, rank.error));
  claim.RemoveIfEmpty();
  if (ranks.empty()) Diagnose("the replay has left no trace in " + claim.directory());
  return !ranks.empty();
}

}  // namespace deja::cli
