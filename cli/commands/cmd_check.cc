// deja check: what the recordings of a job's ranks show together; the first cause first.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/check.h"
#include "check/evidence/summarize.h"
#include "cli/check/check_places.h"
#include "cli/check/check_report.h"
#include "cli/command.h"
#include "cli/events/rank_summary.h"
#include "cli/output.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct CheckOptions {
  std::string trace;
  std::vector<std::string> binaries;
};
CheckOptions g_check_options;

void AddCheckOptions(CLI::App& app) {
  app.add_option("TRACE", g_check_options.trace, "A trace directory or a bundle")->required();
  app.add_option("--binaries", g_check_options.binaries,
                 "Folders with the program's binaries, if not where they ran");
}

// Of the last attempt that there was. Ranks that have no part in it are left out, and noted: what
// they did before does not belong to what the others did last.
std::vector<format::RankFolder> LastAttempt(const format::Trace& trace,
                                            std::vector<std::string>& notes) {
  uint32_t last = 0;
  for (const format::RankFolder& folder : trace.ranks()) last = std::max(last, folder.attempt);
  std::vector<format::RankFolder> folders;
  std::set<uint32_t> others;
  for (const format::RankFolder& folder : trace.ranks()) {
    if (folder.attempt == last)
      folders.push_back(folder);
    else
      others.insert(folder.rank);
  }
  for (const format::RankFolder& folder : folders) others.erase(folder.rank);
  const std::vector<uint32_t> numbers(others.begin(), others.end());
  if (!numbers.empty())
    notes.push_back(
        fmt::format("{}: not in attempt {}, the last one, which is the one that is checked",
                    check::RanksText(numbers), last));
  return folders;
}

int RunCheck(const Context& context) {
  auto trace = format::Trace::Open(g_check_options.trace);
  if (!trace) return FailWith(trace.error());
  Symbolizer symbolizer;
  for (const std::string& directory : g_check_options.binaries) symbolizer.AddDirectory(directory);
  CheckPlaces places(symbolizer);
  std::vector<check::RankSummary> summaries;
  std::vector<std::string> notes;
  std::vector<std::string> unread;
  const std::vector<format::RankFolder> folders = LastAttempt(**trace, notes);
  {
    Progress progress("checking " + g_check_options.trace);
    for (const format::RankFolder& folder : folders) {
      // Not by the trace, which keeps what it has opened.
      auto reader = format::RankReader::Open(folder.path);
      if (!reader) {
        unread.push_back(
            fmt::format("rank {} cannot be read: {}", folder.rank, reader.error().message));
        continue;
      }
      summaries.push_back(check::Summarize(**reader, places, {IsRunning(**reader)}));
      // The folder's name is what other commands take.
      summaries.back().rank = folder.rank;
      progress.Update(summaries.size(), folders.size());
    }
  }
  if (summaries.empty()) {
    for (const std::string& line : unread) Diagnose(line);
    Diagnose(fmt::format("checking {}: no rank in it can be read", g_check_options.trace));
    return kExitFailure;
  }
  const size_t ranks = summaries.size();
  check::Report report = check::Check(check::Job(std::move(summaries)));
  report.notes.insert(report.notes.end(), notes.begin(), notes.end());
  report.notes.insert(report.notes.end(), unread.begin(), unread.end());
  report.is_damaged = report.is_damaged || !unread.empty();
  if (context.json) {
    PrintJson(CheckJson(report, g_check_options.trace, ranks));
  } else {
    for (const std::string& line : CheckLines(report, g_check_options.trace, ranks))
      PrintLine(line);
  }
  if (!report.findings.empty()) return kExitDiverged;
  return report.is_damaged ? kExitDataLoss : kExitOk;
}

}  // namespace

extern const Command kCheckCommand;
const Command kCheckCommand = {
    "check",
    "Which rank did something else first, where in its source, and what follows; exit 4 if one did",
    "  deja check run.deja\n"
    "  deja check run.deja.zip --json\n"
    "  deja check run.deja --binaries build/bin    name source lines with these binaries\n",
    false,
    AddCheckOptions,
    RunCheck,
};

}  // namespace deja::cli
