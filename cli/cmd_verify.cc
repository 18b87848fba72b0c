// deja verify: every frame and payload of a trace checked.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/output.h"
#include "format/trace.h"

namespace deja::cli {
namespace {

struct Options {
  std::string trace;
};
Options g_options;

void AddOptions(CLI::App& app) {
  app.add_option("TRACE", g_options.trace, "A trace directory or a bundle")->required();
}

bool Sound(const format::VerifyReport& report) {
  return report.problems.empty() && report.events_lost == 0 && report.payloads_missing == 0;
}

void PrintText(const format::VerifyReport& report) {
  for (const format::VerifyProblem& problem : report.problems)
    PrintLine(fmt::format("rank {}{}: {} at byte {}: {}", problem.rank,
                          problem.child.empty() ? "" : ", child " + problem.child, problem.file,
                          problem.offset, problem.what));
  if (report.events_lost != 0)
    PrintLine(
        fmt::format("{} events are missing from the streams", HumanCount(report.events_lost)));
  if (report.payloads_dropped != 0)
    PrintLine(
        fmt::format("{} payloads that events refer to were dropped, as the window of the "
                    "recording says",
                    HumanCount(report.payloads_dropped)));
  if (report.payloads_missing != 0)
    PrintLine(fmt::format("{} payloads that events refer to are not there",
                          HumanCount(report.payloads_missing)));
  if (report.payloads_left_out != 0)
    PrintLine(fmt::format("{} payloads were left out when the trace was packed",
                          HumanCount(report.payloads_left_out)));
  std::string children;
  if (report.children != 0) children = fmt::format("{} child processes, ", report.children);
  PrintLine(fmt::format("{}: {} ranks, {}{} frames, {} events, {} payloads of {}",
                        Sound(report) ? "sound" : "NOT SOUND", report.ranks, children,
                        HumanCount(report.frames), HumanCount(report.events),
                        HumanCount(report.payloads), HumanBytes(report.payload_bytes)));
}

int Run(const Context& context) {
  auto trace = format::Trace::Open(g_options.trace);
  if (!trace) return FailWith(trace.error());
  Result<format::VerifyReport> report;
  {
    Progress progress("verifying " + g_options.trace);
    report = format::Verify(**trace,
                            [&](uint64_t done, uint64_t total) { progress.Update(done, total); });
  }
  if (!report) return FailWith(report.error());
  if (!context.json) {
    PrintText(*report);
    return Sound(*report) ? kExitOk : kExitDataLoss;
  }
  nlohmann::json json = {{"sound", Sound(*report)},
                         {"ranks", report->ranks},
                         {"children", report->children},
                         {"frames", report->frames},
                         {"events", report->events},
                         {"payloads", report->payloads},
                         {"payload_bytes", report->payload_bytes},
                         {"events_lost", report->events_lost},
                         {"payloads_missing", report->payloads_missing},
                         {"payloads_dropped", report->payloads_dropped},
                         {"payloads_left_out", report->payloads_left_out},
                         {"problems", nlohmann::json::array()}};
  for (const format::VerifyProblem& problem : report->problems)
    json["problems"].push_back({{"rank", problem.rank},
                                {"child", problem.child},
                                {"file", problem.file},
                                {"offset", problem.offset},
                                {"what", problem.what}});
  PrintJson(json);
  return Sound(*report) ? kExitOk : kExitDataLoss;
}

}  // namespace

extern const Command kVerifyCommand;
const Command kVerifyCommand = {
    "verify",
    "Check every frame and payload; exit 3 if something is lost",
    "  deja verify run.deja\n"
    "  deja verify run.deja.zip --json\n",
    false,
    AddOptions,
    Run,
};

}  // namespace deja::cli
