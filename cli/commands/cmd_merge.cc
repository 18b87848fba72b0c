// deja merge: traces of single nodes become one.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "check/evidence/job.h"
#include "cli/command.h"
#include "cli/fence/trust_store.h"
#include "cli/help/option_list.h"
#include "cli/merge/merge_parts.h"
#include "cli/output.h"
#include "cli/pack/staged_output.h"
#include "cli/progress.h"
#include "cli/summaries/trace_damage.h"
#include "format/layout/child_folder.h"
#include "format/layout/rank_folder.h"
#include "format/pack/finalized_copy.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::vector<std::string> traces;
  std::string out;
};
MergeOptions g_merge_options;

void AddMergeOptions(CLI::App& app) {
  app.add_option("TRACE", g_merge_options.traces,
                 "Trace directories or bundles, one of each node; the first one's clock is kept")
      ->required()
      ->expected(2, -1);
  app.add_option("-o,--out", g_merge_options.out, "The trace directory to make")->required();
  SetPaths(app, {"--out"});
}

struct CopyJob {
  std::string from;
  std::string name;  // of the folder in the merged trace
  int64_t clock_ahead_ns = 0;
};

// The folders of a part: its ranks and the processes that they have made.
std::vector<CopyJob> JobsOf(const MergePart& part, const std::vector<int64_t>& ahead) {
  std::vector<CopyJob> jobs;
  std::map<std::string, int64_t> of_hosts;
  const auto& ranks = part.trace->ranks();
  for (size_t i = 0; i < ranks.size(); ++i) {
    of_hosts[part.hosts[i]] = ahead[i];
    jobs.push_back(
        {ranks[i].path, format::MakeRankFolderName(ranks[i].rank, ranks[i].attempt), ahead[i]});
  }
  for (const std::string& folder : format::ListChildFolders(part.trace->directory())) {
    const auto origin = format::ReadOrigin(folder);
    const auto host = of_hosts.find(origin ? origin->hostname : "");
    jobs.push_back(
        {folder, fs::path(folder).filename().string(), host == of_hosts.end() ? 0 : host->second});
  }
  return jobs;
}

Status CopyFolders(const MergeParts& merged, const std::vector<std::vector<int64_t>>& ahead,
                   const std::string& out) {
  if (mkdir(out.c_str(), 0700) != 0) return FailErrno("merging: making " + out, errno);
  std::vector<CopyJob> jobs;
  for (size_t p = 0; p < merged.parts.size(); ++p)
    for (CopyJob& job : JobsOf(merged.parts[p], ahead[p])) jobs.push_back(std::move(job));
  Progress progress("merging into " + g_merge_options.out, ProgressUnit::kFiles);
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string to = out + "/" + jobs[i].name;
    if (mkdir(to.c_str(), 0700) != 0)
      return FailErrno(fmt::format("merging: {}: making {}", jobs[i].from, jobs[i].name), errno);
    DEJA_RETURN_IF_ERROR(format::WriteFinalizedCopy(
        jobs[i].from, to, {merged.parts.front().job_id, jobs[i].clock_ahead_ns}));
    progress.Update(i + 1, jobs.size());
  }
  return {};
}

// As far as the least of them is trusted.
void PassLeastTrust(const std::string& to) {
  const TrustStore store;
  Trust trust = Trust::kOwn;
  for (const std::string& trace : g_merge_options.traces) trust = std::min(trust, store.Of(trace));
  if (trust != Trust::kNone) (void)store.Add(to, trust);
}

std::string ClockText(int64_t ahead_ns) {
  const std::string much = HumanDuration(static_cast<uint64_t>(std::abs(ahead_ns)));
  return fmt::format("its clock was {} {}", much, ahead_ns > 0 ? "ahead" : "behind");
}

void PrintMerged(const MergeParts& merged, const std::vector<std::vector<int64_t>>& ahead,
                 bool as_json) {
  nlohmann::json parts = nlohmann::json::array();
  size_t ranks = 0;
  std::vector<std::string> lines;
  for (size_t p = 0; p < merged.parts.size(); ++p) {
    const MergePart& part = merged.parts[p];
    std::vector<uint32_t> numbers;
    std::map<std::string, int64_t> hosts;
    for (size_t r = 0; r < part.hosts.size(); ++r) {
      const uint32_t rank = part.trace->ranks()[r].rank;
      if (numbers.empty() || numbers.back() != rank) numbers.push_back(rank);
      hosts[part.hosts[r]] = ahead[p][r];
    }
    ranks += numbers.size();
    nlohmann::json clocks = nlohmann::json::array();
    std::string text = fmt::format("  {}: {}", part.path, check::RanksText(numbers));
    for (const auto& [host, its] : hosts) {
      clocks.push_back({{"host", host}, {"clock_ahead_ns", its}});
      if (its != 0) text += fmt::format("; {}: {}", host, ClockText(its));
    }
    lines.push_back(std::move(text));
    parts.push_back({{"trace", part.path}, {"ranks", numbers}, {"hosts", clocks}});
  }
  if (as_json)
    return PrintJson({{"trace", g_merge_options.out},
                      {"ranks", ranks},
                      {"world_size", merged.world_size},
                      {"parts", parts}});
  PrintLine(fmt::format("{}: {} of {} ranks", g_merge_options.out, ranks,
                        std::max<size_t>(merged.world_size, ranks)));
  for (const std::string& line : lines) PrintLine(line);
}

int RunMerge(const Context& context) {
  umask(077);  // what is recorded is for its user alone
  const auto staged = StagedOutput::For(g_merge_options.out);
  if (!staged) return FailWith(staged.error());
  const auto merged = ReadMergeParts(g_merge_options.traces);
  if (!merged) return FailWith(merged.error());
  const auto ahead = ClocksAhead(*merged);
  if (const Status copied = CopyFolders(*merged, ahead, staged->path()); !copied)
    return FailWith(copied.error());
  if (const auto published = staged->Publish({staged->path()}); !published)
    return FailWith(published.error());
  PassLeastTrust(g_merge_options.out);
  PrintMerged(*merged, ahead, context.json);
  bool damaged = false;
  for (const MergePart& part : merged->parts) damaged = SayIfDamaged(*part.trace) || damaged;
  return damaged ? kExitDataLoss : kExitOk;
}

}  // namespace

extern const Command kMergeCommand;
const Command kMergeCommand = {
    "merge",
    "Merge traces that nodes without a shared file system have written",
    "  deja merge node0.deja node1.deja --out run.deja\n"
    "  deja merge node*.deja.zip --out run.deja --json    also how far the clocks were apart\n",
    false,
    AddMergeOptions,
    RunMerge,
};

}  // namespace deja::cli
