// deja check: what the recordings of a job's ranks show together; the first cause first.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/check.h"
#include "check/compare.h"
#include "check/evidence/summarize.h"
#include "check/evidence/trim.h"
#include "cli/check/check_places.h"
#include "cli/check/check_report.h"
#include "cli/command.h"
#include "cli/events/rank_summary.h"
#include "cli/help/option_list.h"
#include "cli/output.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct CheckOptions {
  std::string trace;
  std::string second;
  std::string resumed;
  std::vector<std::string> binaries;
};
CheckOptions g_check_options;

void AddCheckOptions(CLI::App& app) {
  AddTraceArgument(app, "TRACE", g_check_options.trace);
  CLI::Option* second = app.add_option(
      "SECOND", g_check_options.second,
      "Another recording of what should be the same job: the first number that differs, and the "
      "inputs that differ before it");
  app.add_option("--resumed", g_check_options.resumed,
                 "A recording that was resumed from a checkpoint of TRACE: whether it goes on as "
                 "TRACE did")
      ->excludes(second);
  AddBinariesOption(app, g_check_options.binaries);
}

// The ranks of the last attempt. Ranks that have no part in it are left out and noted: their
// earlier calls do not belong to the last calls of the others.
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

// What was read of one trace.
struct Summaries {
  std::vector<check::RankSummary> ranks;
  std::vector<std::string> notes;
  bool is_damaged = false;
};

Result<Summaries> SummarizeTrace(const std::string& path, check::PlaceFinder& places) {
  auto trace = format::Trace::Open(path);
  if (!trace) return tl::unexpected(trace.error());
  Summaries read;
  // Two runs are compared number by number.
  const bool is_one = g_check_options.second.empty() && g_check_options.resumed.empty();
  check::Trimmer trimmer(is_one ? check::Trimmer::kWindow : SIZE_MAX);
  size_t count = 0;
  std::vector<std::string> unread;
  const std::vector<format::RankFolder> folders = LastAttempt(**trace, read.notes);
  Progress progress("checking " + path);
  for (const format::RankFolder& folder : folders) {
    // Not by the trace, which keeps what it has opened.
    auto reader = format::RankReader::Open(folder.path);
    if (!reader) {
      unread.push_back(fmt::format("checking: rank {}: its recording cannot be read: {}",
                                   folder.rank, reader.error().message));
      continue;
    }
    check::RankSummary summary = check::Summarize(**reader, places, {IsRunning(**reader)});
    // The folder's name is what other commands take.
    summary.rank = folder.rank;
    trimmer.Take(std::move(summary));
    progress.Update(++count, folders.size());
  }
  read.ranks = trimmer.Finish();
  if (read.ranks.empty()) {
    for (const std::string& line : unread) Diagnose(line);
    return tl::unexpected(
        Error{.message = fmt::format("checking: {}: no rank in it can be read", path)});
  }
  read.is_damaged = !unread.empty();
  read.notes.insert(read.notes.end(), unread.begin(), unread.end());
  return read;
}

// The report of one trace, or of two.
Result<check::Report> ReportOf(Summaries first, check::PlaceFinder& places) {
  const std::string& other =
      g_check_options.resumed.empty() ? g_check_options.second : g_check_options.resumed;
  if (other.empty()) return check::Check(check::Job(std::move(first.ranks)));
  auto second = SummarizeTrace(other, places);
  if (!second) return tl::unexpected(second.error());
  const check::Job a(std::move(first.ranks));
  const check::Job b(std::move(second->ranks));
  check::Report report =
      g_check_options.resumed.empty() ? check::CompareRuns(a, b) : check::CompareResumed(a, b);
  report.notes.insert(report.notes.end(), second->notes.begin(), second->notes.end());
  report.is_damaged = second->is_damaged;
  return report;
}

int RunCheck(const Context& context) {
  Symbolizer symbolizer;
  for (const std::string& directory : g_check_options.binaries) symbolizer.AddDirectory(directory);
  CheckPlaces places(symbolizer);
  auto summaries = SummarizeTrace(g_check_options.trace, places);
  if (!summaries) return FailWith(summaries.error());
  const size_t ranks = summaries->ranks.size();
  const bool is_damaged = summaries->is_damaged;
  const std::vector<std::string> notes = summaries->notes;
  auto made = ReportOf(std::move(*summaries), places);
  if (!made) return FailWith(made.error());
  check::Report& report = *made;
  report.notes.insert(report.notes.end(), notes.begin(), notes.end());
  report.is_damaged = report.is_damaged || is_damaged;
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
    "  deja check monday.deja tuesday.deja        the first number that differs, and why\n"
    "  deja check whole.deja --resumed rest.deja  does the resumed run go on as the whole one "
    "did?\n"
    "  deja check run.deja --binaries build/bin    name source lines with these binaries\n",
    false,
    AddCheckOptions,
    RunCheck,
};

}  // namespace deja::cli
