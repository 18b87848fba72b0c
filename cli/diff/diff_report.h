// DiffReport: two ranks' recordings compared, and what `deja diff` and `deja bisect` say about
// them.
//
// Main thread only; borrows the traces while it compares.
#ifndef DEJA_CLI_DIFF_DIFF_REPORT_H_
#define DEJA_CLI_DIFF_DIFF_REPORT_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/diff/trace_diff.h"
#include "cli/events/rank_summary.h"
#include "cli/events/symbolizer.h"
#include "format/trace/trace.h"

namespace deja::cli {

// Options that all commands that compare recordings share.
struct DiffChoices {
  std::vector<std::string> ignored;   // patterns of snapshots' names
  std::vector<std::string> binaries;  // folders

  // `app` refers to this from now on.
  void AddTo(CLI::App& app);
};

// One pair of ranks, compared.
struct Compared {
  uint32_t rank_a = 0;
  uint32_t rank_b = 0;
  RankSummary summary_a;
  RankSummary summary_b;
  RankDiff diff;
  std::vector<std::string> job;  // JobDifferences
  // Set if the trace is a replay's own.
  std::optional<format::ReplayOrigin> replay_a;
  std::optional<format::ReplayOrigin> replay_b;
  std::vector<std::string> notes;  // what these two leave out of the comparison
};

// Ranks that both traces have, and a word on those that only one of them has.
Result<std::vector<uint32_t>> RanksOfBoth(const format::Trace& a, const format::Trace& b);

Result<Compared> ComparePair(format::Trace& a, format::Trace& b, uint32_t rank_a, uint32_t rank_b,
                             const DiffOptions& options);

// What differs first comes first, by step and then by the clock: it is nearer to the cause.
void SortByCause(std::vector<Compared>& all);

void PrintCompared(const Compared& compared, bool between_ranks, Symbolizer& symbolizer);
nlohmann::json ToJson(const Compared& compared);

}  // namespace deja::cli

#endif  // DEJA_CLI_DIFF_DIFF_REPORT_H_
