// deja recover: completes the folders of ranks that died while nobody was there to sweep up after
// them.
#include <fmt/format.h>

#include "cli/commands/command.h"
#include "cli/events/rank_summary.h"
#include "cli/output.h"
#include "cli/record/trace_sweep.h"
#include "format/repair/recovery.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct RecoverOptions {
  std::string trace;
};
RecoverOptions g_recover_options;

void AddRecoverOptions(CLI::App& app) {
  app.add_option("TRACE", g_recover_options.trace,
                 "A trace directory on the machine where its ranks ran")
      ->required();
}

int RunRecover(const Context& context) {
  auto trace = format::Trace::Open(g_recover_options.trace);
  if (!trace) return FailWith(trace.error());
  if ((*trace)->directory() != g_recover_options.trace &&
      (*trace)->directory() + "/" != g_recover_options.trace &&
      g_recover_options.trace.size() > 4 &&
      g_recover_options.trace.compare(g_recover_options.trace.size() - 4, 4, ".zip") == 0) {
    Diagnose(fmt::format("recovering {}: a bundle is complete as it is", g_recover_options.trace));
    return kExitFailure;
  }
  int code = kExitOk;
  const SweptChildren children = SweepChildren((*trace)->directory(), {});
  for (const std::string& error : children.errors) Diagnose(error);
  if (!children.errors.empty()) code = kExitFailure;
  nlohmann::json json = nlohmann::json::array();
  for (const format::RankFolder& folder : (*trace)->ranks()) {
    auto reader = (*trace)->Rank(folder.rank, static_cast<int>(folder.attempt));
    if (reader && ReadRankSummary(**reader).running) {
      Diagnose(fmt::format("rank {} is still running (process {}); it was left alone", folder.rank,
                           (*reader)->header().process.pid));
      code = kExitFailure;
      continue;
    }
    auto report = format::RecoverRank(folder.path, {});
    if (!report) {
      Diagnose(report.error().message);
      code = kExitFailure;
      continue;
    }
    json.push_back({{"rank", folder.rank},
                    {"attempt", folder.attempt},
                    {"was_finished", report->was_finished},
                    {"events_from_tail", report->events_from_tail},
                    {"payloads_from_tail", report->payloads_from_tail},
                    {"torn_bytes_cut", report->torn_bytes_cut}});
    if (context.json) continue;
    PrintLine(
        report->was_finished
            ? fmt::format("rank {}: complete already", folder.rank)
            : fmt::format(
                  "rank {}: {} events and {} payloads taken from its tail, {} torn bytes cut off",
                  folder.rank, HumanCount(report->events_from_tail),
                  HumanCount(report->payloads_from_tail), report->torn_bytes_cut));
  }
  if (context.json) PrintJson(json);
  return code;
}

}  // namespace

extern const Command kRecoverCommand;
const Command kRecoverCommand = {
    "recover",
    "Complete the recording of ranks that died with their launcher",
    "  deja recover run.deja\n"
    "`deja record` does this by itself for the ranks that it outlives, and every command reads a "
    "trace that was\n"
    "not recovered; recovering makes it independent of the machine's shared memory.\n",
    false,
    AddRecoverOptions,
    RunRecover,
};

}  // namespace deja::cli
