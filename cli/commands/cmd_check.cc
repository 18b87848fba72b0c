// deja check: what the recordings of a job's ranks show together; the first cause first.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "check/check.h"
#include "check/compare.h"
#include "check/evidence/trim.h"
#include "cli/check/check_places.h"
#include "cli/check/check_report.h"
#include "cli/check/keep_summaries.h"
#include "cli/check/read_summaries.h"
#include "cli/command.h"
#include "cli/events/symbolizer.h"
#include "cli/help/option_list.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/pager.h"

namespace deja::cli {
namespace {

struct CheckOptions {
  std::string trace;
  std::string second;
  std::string resumed;
  bool summarize = false;
  std::vector<std::string> ranks;
  std::vector<std::string> binaries;
  int attempt = kLastAttempt;
};
CheckOptions g_check_options;

// Calls of a communicator, of all ranks together: 64 MB.
constexpr size_t kOwnTimes = size_t{1} << 20;

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
  app.add_option("--attempt", g_check_options.attempt,
                 "The attempt of restarted ranks to check (default: the last; earlier ones are "
                 "summed up in notes)")
      ->check(CLI::NonNegativeNumber)
      ->excludes(second)
      ->excludes("--resumed");
  CLI::Option* summarize =
      app.add_flag("--summarize", g_check_options.summarize,
                   "Leave a summary beside each rank's recording: checks that follow take it and "
                   "need not read the recording. TRACE may be the folder of one rank")
          ->excludes(second)
          ->excludes("--resumed")
          ->excludes("--attempt");
  app.add_option("--ranks", g_check_options.ranks,
                 "Summarize these ranks of the trace: \"3\", \"0-7\" (default: all)")
      ->delimiter(',')
      ->needs(summarize);
  AddBinariesOption(app, g_check_options.binaries);
}

Result<TraceSummaries> SummariesOf(const std::string& path, check::PlaceFinder& places,
                                   int attempt) {
  // Two runs are compared number by number.
  const bool is_one = g_check_options.second.empty() && g_check_options.resumed.empty();
  ReadSummariesOptions options;
  options.attempt = attempt;
  options.window = is_one ? check::Trimmer::kWindow : SIZE_MAX;
  options.own_of_all = is_one ? kOwnTimes : 0;
  // Places in summaries were named without these binaries.
  options.use_kept = g_check_options.binaries.empty();
  return ReadSummaries(path, places, options);
}

// The report of one trace, or of two.
Result<check::Report> ReportOf(TraceSummaries first, check::PlaceFinder& places) {
  const std::string& other =
      g_check_options.resumed.empty() ? g_check_options.second : g_check_options.resumed;
  if (other.empty()) return check::Check(check::Job(std::move(first.ranks)));
  auto second = SummariesOf(other, places, kLastAttempt);
  if (!second) return tl::unexpected(second.error());
  const check::Job a(std::move(first.ranks));
  const check::Job b(std::move(second->ranks));
  check::Report report =
      g_check_options.resumed.empty() ? check::CompareRuns(a, b) : check::CompareResumed(a, b);
  report.notes.insert(report.notes.end(), second->notes.begin(), second->notes.end());
  report.is_damaged = second->is_damaged;
  return report;
}

// How an attempt ended in which nothing is found: "rank 1 exit 1, ValueError: …; ranks 0,2
// SIGTERM".
std::string EndsText(const std::vector<check::RankSummary>& ranks) {
  std::map<std::string, std::vector<uint32_t>> ends;
  for (const check::RankSummary& rank : ranks) ends[rank.end.Describe()].push_back(rank.rank);
  std::string text;
  for (const auto& [end, of] : ends)
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", check::RanksText(of), end);
  return text;
}

// What is found in the attempts before `last`: a note and an object of JSON for each.
nlohmann::json CheckEarlier(uint32_t last, check::PlaceFinder& places,
                            std::vector<std::string>& notes) {
  nlohmann::json attempts = nlohmann::json::array();
  for (uint32_t attempt = 0; attempt < last; ++attempt) {
    auto summaries = SummariesOf(g_check_options.trace, places, static_cast<int>(attempt));
    if (!summaries) {
      notes.push_back(fmt::format("attempt {}: {}", attempt, summaries.error().message));
      continue;
    }
    const CheckedTrace trace{g_check_options.trace, summaries->ranks.size(), attempt};
    const std::string ends = EndsText(summaries->ranks);
    const check::Report report = check::Check(check::Job(std::move(summaries->ranks)));
    attempts.push_back(CheckJson(report, trace));
    attempts.back()["attempt"] = attempt;
    const std::string found =
        report.findings.empty() ? "nothing found; " + ends : ShortLine(report.findings.front());
    notes.push_back(fmt::format("attempt {}, before the last one: {}; `deja check --attempt {}`",
                                attempt, found, attempt));
  }
  return attempts;
}

int RunSummarize(const Context& context, check::PlaceFinder& places) {
  const auto ranks = ParseRanks(g_check_options.ranks);
  if (!ranks) {
    Diagnose(ranks.error().message);
    return kExitUsage;
  }
  const auto kept = KeepSummaries(g_check_options.trace, *ranks, places);
  if (!kept) return FailWith(kept.error());
  if (context.json)
    PrintJson({{"trace", g_check_options.trace},
               {"ranks", kept->ranks},
               {"bytes", kept->bytes},
               {"events_bytes", kept->events_bytes},
               {"damaged", kept->is_partial}});
  else
    PrintLine(fmt::format("{}: {} summarized: {} of {} of events", g_check_options.trace,
                          check::RanksText(kept->ranks), HumanBytes(kept->bytes),
                          HumanBytes(kept->events_bytes)));
  return kept->is_partial ? kExitDataLoss : kExitOk;
}

int RunCheck(const Context& context) {
  Symbolizer symbolizer;
  for (const std::string& directory : g_check_options.binaries) symbolizer.AddDirectory(directory);
  CheckPlaces places(symbolizer);
  if (g_check_options.summarize) return RunSummarize(context, places);
  auto summaries = SummariesOf(g_check_options.trace, places, g_check_options.attempt);
  if (!summaries) return FailWith(summaries.error());
  const size_t ranks = summaries->ranks.size();
  const bool is_damaged = summaries->is_damaged;
  const size_t from_kept = summaries->from_kept;
  const std::vector<std::string> notes = summaries->notes;
  const uint32_t attempt = summaries->attempt;
  auto made = ReportOf(std::move(*summaries), places);
  if (!made) return FailWith(made.error());
  check::Report& report = *made;
  report.notes.insert(report.notes.end(), notes.begin(), notes.end());
  report.is_damaged = report.is_damaged || is_damaged;
  CheckedTrace trace{g_check_options.trace, ranks};
  nlohmann::json earlier = nlohmann::json::array();
  if (g_check_options.attempt != kLastAttempt)
    trace.attempt = attempt;
  else if (g_check_options.second.empty() && g_check_options.resumed.empty())
    earlier = CheckEarlier(attempt, places, report.notes);
  if (context.json) {
    nlohmann::json json = CheckJson(report, trace);
    json["summaries"] = from_kept;
    json["attempt"] = attempt;
    if (!earlier.empty()) json["earlier_attempts"] = std::move(earlier);
    PrintJson(json);
  } else {
    const Pager pager(true);
    for (const std::string& line : CheckLines(report, trace)) PrintLine(line);
  }
  if (!report.findings.empty()) return kExitDiverged;
  return report.is_damaged ? kExitDataLoss : kExitOk;
}

}  // namespace

extern const Command kCheckCommand;
const Command kCheckCommand = {
    "check",
    "Name the rank that did something else first, its source line, and what follows; exit 4 if one "
    "did",
    "  deja check run.deja\n"
    "  deja check run.deja.zip --json\n"
    "  deja check monday.deja tuesday.deja        the first number that differs, and why\n"
    "  deja check whole.deja --resumed rest.deja  does the resumed run go on as the whole one "
    "did?\n"
    "  deja check run.deja --binaries build/bin    name source lines with these binaries\n"
    "  deja check run.deja --attempt 0             what ended the first attempt of a restarted "
    "job\n"
    "  deja check --summarize run.deja --ranks 0-7  leave summaries, on the ranks' own node\n",
    false,
    AddCheckOptions,
    RunCheck,
};

}  // namespace deja::cli
