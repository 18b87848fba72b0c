// deja verify: every frame and payload of a trace checked.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/help/option_list.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/replay/bounds/checkpoint_choice.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"

namespace deja::cli {
namespace {

struct VerifyOptions {
  std::string trace;
  std::optional<uint64_t> checkpoint;
  int rank = -1;
  int attempt = -1;
};
VerifyOptions g_verify_options;

void AddVerifyOptions(CLI::App& app) {
  AddTraceArgument(app, "TRACE", g_verify_options.trace);
  auto* checkpoint = app.add_option(
      "--checkpoint", g_verify_options.checkpoint,
      "Check only the bytes of the checkpoint at this step: can a replay start there?");
  app.add_option("--rank", g_verify_options.rank,
                 "With --checkpoint: of this rank (default: of all)")
      ->check(CLI::NonNegativeNumber)
      ->needs(checkpoint);
  app.add_option("--attempt", g_verify_options.attempt,
                 "With --checkpoint: of this run of restarted ranks (default: the last)")
      ->needs(checkpoint);
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

// Empty: a replay can start there.
Result<std::string> CheckCheckpoint(format::Trace& trace, uint64_t step) {
  std::vector<uint32_t> ranks = RankNumbers(trace);
  if (g_verify_options.rank >= 0) {
    DEJA_RETURN_IF_ERROR(
        trace.Rank(static_cast<uint32_t>(g_verify_options.rank), g_verify_options.attempt));
    ranks = {static_cast<uint32_t>(g_verify_options.rank)};
  }
  std::string why;
  DEJA_ASSIGN_OR_RETURN(const std::optional<ReplayStart> start,
                        FindReplayStart(trace, step, g_verify_options.attempt, ranks, why));
  if (!start || start->step != step)
    return Fail(ErrorCode::kNotFound,
                fmt::format("checking the checkpoint at step {} of {}: there is none that all "
                            "ranks have whole ({})",
                            step, trace.path(),
                            start ? fmt::format("the last one before it is at step {}", start->step)
                                  : why));
  return FindDamage(trace, *start, ranks, g_verify_options.attempt);
}

int RunOfCheckpoint(format::Trace& trace, uint64_t step, const Context& context) {
  auto damage = CheckCheckpoint(trace, step);
  if (!damage) return FailWith(damage.error());
  if (context.json) {
    nlohmann::json json = {{"checkpoint", step}, {"sound", damage->empty()}};
    if (!damage->empty()) json["problem"] = *damage;
    PrintJson(json);
  } else if (damage->empty()) {
    PrintLine(fmt::format("sound: the checkpoint at step {}", step));
  } else {
    PrintLine(fmt::format("NOT SOUND: the checkpoint at step {}: {}", step, *damage));
  }
  return damage->empty() ? kExitOk : kExitDataLoss;
}

int RunVerify(const Context& context) {
  auto trace = OpenTrace(g_verify_options.trace);
  if (!trace) return FailWith(trace.error());
  if (g_verify_options.checkpoint)
    return RunOfCheckpoint(**trace, *g_verify_options.checkpoint, context);
  Result<format::VerifyReport> report;
  {
    Progress progress("verifying " + g_verify_options.trace);
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
    "  deja verify run.deja.zip --json\n"
    "  deja verify run.deja --checkpoint 4800 --rank 2    can a replay start there?\n",
    false,
    AddVerifyOptions,
    RunVerify,
};

}  // namespace deja::cli
