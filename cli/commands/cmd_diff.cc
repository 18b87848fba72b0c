// deja diff: where two recordings differ first.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/diff/diff_report.h"
#include "cli/help/option_list.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/pager.h"
#include "cli/progress.h"
#include "cli/summaries/trace_damage.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct DiffOptions {
  std::string a;
  std::string b;
  int rank = -1;
  int with_rank = -1;
  DiffChoices choices;
};
DiffOptions g_diff_options;

void AddDiffOptions(CLI::App& app) {
  AddTraceArgument(app, "A", g_diff_options.a);
  app.add_option(
      "B", g_diff_options.b,
      "Another one, or the trace of a replay (deja replay --out); A itself if two ranks of A are "
      "compared");
  auto* rank = app.add_option("--rank", g_diff_options.rank, "Only this rank")
                   ->check(CLI::NonNegativeNumber);
  app.add_option("--with-rank", g_diff_options.with_rank,
                 "Compare rank R of A with this rank: results of all-reduce, all-gather and "
                 "broadcast, and snapshots")
      ->check(CLI::NonNegativeNumber)
      ->needs(rank);
  g_diff_options.choices.AddTo(app);
}

// The ranks of A to be compared, and a word on those that only one of the traces has.
Result<std::vector<uint32_t>> ChosenRanks(const format::Trace& a, const format::Trace& b) {
  if (g_diff_options.rank >= 0)
    return std::vector<uint32_t>{static_cast<uint32_t>(g_diff_options.rank)};
  return RanksOfBoth(a, b);
}

int RunDiff(const Context& context) {
  const bool between_ranks = g_diff_options.with_rank >= 0;
  if (g_diff_options.b.empty() && !between_ranks) {
    Diagnose(
        "comparing: there is nothing to compare with; give another trace, or --rank R --with-rank "
        "S of this one");
    return kExitUsage;
  }
  auto a = OpenTrace(g_diff_options.a);
  if (!a) return FailWith(a.error());
  auto b = OpenTrace(g_diff_options.b.empty() ? g_diff_options.a : g_diff_options.b);
  if (!b) return FailWith(b.error());
  auto ranks = ChosenRanks(**a, **b);
  if (!ranks) return FailWith(ranks.error());
  const bool damaged = SayIfDamaged(**a, **b);

  std::vector<Compared> all;
  {
    Progress progress("comparing ranks", ProgressUnit::kRanks);
    for (uint32_t rank : *ranks) {
      auto compared = ComparePair(
          **a, **b, rank, between_ranks ? static_cast<uint32_t>(g_diff_options.with_rank) : rank,
          {between_ranks, g_diff_options.choices.ignored});
      if (!compared) return FailWith(compared.error());
      all.push_back(std::move(*compared));
      progress.Update(all.size(), ranks->size());
    }
  }
  SortByCause(all);
  const bool equal = std::none_of(all.begin(), all.end(),
                                  [](const Compared& one) { return one.diff.first.has_value(); });
  if (context.json) {
    nlohmann::json json = {{"a", (*a)->path()}, {"b", (*b)->path()}, {"equal", equal}};
    json["job_differences"] = all[0].job;
    json["ranks"] = nlohmann::json::array();
    for (const Compared& one : all) json["ranks"].push_back(ToJson(one));
    PrintJson(json);
  } else {
    const Pager pager(true);
    Symbolizer symbolizer;
    for (const std::string& directory : g_diff_options.choices.binaries)
      symbolizer.AddDirectory(directory);
    for (const std::string& difference : all[0].job) PrintLine("not the same job: " + difference);
    for (const Compared& one : all) PrintCompared(one, between_ranks, symbolizer);
  }
  return damaged ? kExitDataLoss : equal ? kExitOk : kExitDiverged;
}

}  // namespace

extern const Command kDiffCommand;
const Command kDiffCommand = {
    "diff",
    "Find the first difference of two recordings of a job, of a recording and its "
    "replay, or of two ranks; exit 4 if there is one",
    "  deja diff monday.deja tuesday.deja              each rank with the same one of the other "
    "run\n"
    "  deja diff monday.deja tuesday.deja --rank 2\n"
    "  deja diff run.deja again.deja                   a replay's own trace: deja replay --out\n"
    "  deja diff run.deja --rank 0 --with-rank 1       two ranks that should agree\n",
    false,
    AddDiffOptions,
    RunDiff,
};

}  // namespace deja::cli
