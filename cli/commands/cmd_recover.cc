// deja recover: completes the folders of ranks that died when no `deja record` was left to complete
// them.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "cli/command.h"
#include "cli/events/rank_summary.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/record/trace_sweep.h"
#include "cli/summaries/trace_damage.h"
#include "common/text/hex_text.h"
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

// What the processes of its jobs had in common on this machine, once none of them needs it.
void RemoveJobMemory(const format::Trace& trace, const std::set<std::string>& jobs) {
  for (const std::string& job : jobs) {
    if (job.empty()) continue;
    if (auto removed = format::RemoveOrphanTails(trace.directory(), HexText(job)); !removed)
      Diagnose(removed.error().message);
  }
}

// What is known of a folder before it is completed. The reader is gone then: it knows where each
// payload lies.
struct Before {
  bool running = false;
  uint32_t pid = 0;
  std::string job;
};

Result<Before> LookAt(const format::RankFolder& folder) {
  format::ReadOptions options;
  options.spill_beyond = format::kPayloadsInMemory;
  DEJA_ASSIGN_OR_RETURN(const auto reader, format::RankReader::Open(folder.path, options));
  return Before{IsRunning(*reader), reader->header().process.pid,
                std::string(reader->header().job_id)};
}

uint64_t BytesOf(const format::RankFolder& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path, error))
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  return bytes;
}

int RunRecover(const Context& context) {
  auto trace = OpenTrace(g_recover_options.trace);
  if (!trace) return FailWith(trace.error());
  if ((*trace)->directory() != g_recover_options.trace &&
      (*trace)->directory() + "/" != g_recover_options.trace &&
      g_recover_options.trace.size() > 4 &&
      g_recover_options.trace.compare(g_recover_options.trace.size() - 4, 4, ".zip") == 0) {
    Diagnose(fmt::format("recovering: {}: a bundle is complete as it is", g_recover_options.trace));
    return kExitFailure;
  }
  int code = kExitOk;
  const SweptChildren children = SweepChildren((*trace)->directory(), {});
  for (const std::string& error : children.errors) Diagnose(error);
  if (!children.errors.empty()) code = kExitFailure;
  nlohmann::json json = nlohmann::json::array();
  std::set<std::string> jobs;
  Progress progress("recovering " + g_recover_options.trace);
  uint64_t done = 0;
  uint64_t total = 0;
  for (const format::RankFolder& folder : (*trace)->ranks()) total += BytesOf(folder);
  for (const format::RankFolder& folder : (*trace)->ranks()) {
    const uint64_t done_before = done;
    done += BytesOf(folder);
    const auto before = LookAt(folder);
    if (before) jobs.insert(before->job);
    if (before && before->running) {
      Diagnose(fmt::format("recovering: rank {}: process {} is still running; it was left alone",
                           folder.rank, before->pid));
      code = kExitFailure;
      continue;
    }
    auto report = format::RecoverRank(
        folder.path, {}, [&](uint64_t bytes) { progress.Update(done_before + bytes, total); });
    progress.Update(done, total);
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
  RemoveJobMemory(**trace, jobs);
  // Read again: what was open is what was there before.
  const auto completed = OpenTrace(g_recover_options.trace);
  if (completed && SayIfDamaged(**completed) && code == kExitOk) code = kExitDataLoss;
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
