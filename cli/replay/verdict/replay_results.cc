#include "cli/replay/verdict/replay_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cli/devices/cuda_probe.h"
#include "cli/events/rank_summary.h"
#include "cli/events/symbolizer.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/replay/verdict/lock_order_lack.h"
#include "cli/replay/verdict/replay_verdict.h"
#include "cli/replay/verdict/verdict_additions.h"
#include "cli/summaries/program_parts.h"
#include "cli/summaries/trace_damage.h"
#include "cli/summaries/window_summary.h"
#include "format/trace/verify.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// The summaries of all peers, for ranks that wait for one that never came.
std::vector<PeerSummary> ReadPeers(format::Trace& trace) {
  std::vector<PeerSummary> peers;
  for (const format::RankFolder& folder : trace.ranks()) {
    auto reader = trace.Rank(folder.rank);
    if (reader && (peers.empty() || peers.back().rank != folder.rank))
      peers.push_back({folder.rank, ReadRankSummary(**reader)});
  }
  return peers;
}

bool UsedCuda(const RankSummary& summary) {
  return std::any_of(summary.modules.begin(), summary.modules.end(), [](const auto& module) {
    return fs::path(module.second.path).filename().native().rfind("libcuda.so", 0) == 0;
  });
}

// Where a rank had CUDA's devices and there are none here, programs end in ways of their own.
void LookForDevice(const ReplayTarget& target, ReplayVerdict& verdict) {
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
  std::optional<std::string> visible;
  for (const std::string& entry : target.environment)
    if (entry.rfind(kVisible, 0) == 0) visible = entry.substr(kVisible.size());
  const CudaFound found = LookForCuda(visible);
  if (found.what == CudaFound::What::kDevices) return;
  AddMissingDevice(found.fix.empty() ? found.text : fmt::format("{} ({})", found.text, found.fix),
                   verdict);
}

}  // namespace

void SayWhatIsKept(const format::RankReader& reader) {
  if (reader.totals().payloads_dropped == 0) return;
  const WindowSummary window = ReadWindowSummary(reader);
  Diagnose(
      fmt::format("rank {}: {}; a replay from the start ends at the first result that is not "
                  "kept",
                  reader.header().rank, window.Describe()));
}

int ReportResults(format::Trace& trace, const std::vector<Replayed>& replays,
                  const ResultOptions& options) {
  Symbolizer symbolizer;
  for (const std::string& directory : options.binaries) symbolizer.AddDirectory(directory);
  for (const Replayed& replay : replays)
    symbolizer.AddDirectory(fs::path(replay.target.executable).parent_path().string());
  const std::vector<PeerSummary> peers = ReadPeers(trace);
  nlohmann::json all = {{"trace", trace.path()}, {"ranks", nlohmann::json::array()}};
  int code = kExitOk;
  const bool any_damaged = std::any_of(replays.begin(), replays.end(),
                                       [](const Replayed& one) { return !one.damage.empty(); });
  for (const Replayed& replay : replays) {
    const RankSummary summary = ReadRankSummary(*replay.reader);
    const StackDetail detail = options.stacks ? StackDetail::kNative : StackDetail::kPython;
    const std::string& scratch = replay.target.scratch;
    ReplayVerdict verdict =
        options.edited
            ? JudgeEdited(*replay.reader, summary, scratch, replay.status, symbolizer, detail)
        : replay.child.empty() ? JudgeReplay(*replay.reader, summary, peers, scratch, replay.status,
                                             symbolizer, detail)
                               : JudgeChild(replay.target.rank, replay.child, *replay.child_reader,
                                            scratch, symbolizer, detail);
    AddShortage(replay.shortage, verdict);
    if (replay.hang) AddHang(*replay.hang, LacksLockOrder(*replay.reader), verdict);
    std::string damage = replay.damage;
    uint64_t lost_from_ns = replay.lost_from_ns;
    if (verdict.outcome == Outcome::kFailed && damage.empty() && !options.edited) {
      damage = format::FindContentDamage(trace, *replay.reader);
      lost_from_ns = 0;
      if (!damage.empty()) SayDamaged(fmt::format("rank {}", replay.target.rank), damage);
    }
    AddDamage(damage, lost_from_ns, replay.child.empty() ? *replay.reader : *replay.child_reader,
              verdict);
    verdict.is_damages_doing = verdict.is_damages_doing || (options.computes && any_damaged);
    if (verdict.outcome != Outcome::kSame && !options.edited) {
      if (UsedCuda(summary)) LookForDevice(replay.target, verdict);
      AddChanges(WhatChanged(ReadProgramParts(*replay.reader)), trace.path(), verdict);
    }
    all["ranks"].push_back(verdict.json);
    if (verdict.is_damages_doing && verdict.outcome != Outcome::kSame) {
      if (code == kExitOk) code = kExitDataLoss;
    } else if (verdict.outcome == Outcome::kFailed) {
      code = kExitFailure;
    } else if (verdict.outcome == Outcome::kDiverged && code != kExitFailure) {
      code = kExitDiverged;
    } else if (verdict.data_lost && code == kExitOk) {
      code = kExitDataLoss;
    }
    if (options.json) continue;
    const std::string child = replay.child.empty() ? "" : ", child " + replay.child;
    PrintLine(fmt::format("rank {}{}: {}", replay.target.rank, child, verdict.summary));
    for (const std::string& line : verdict.details) PrintLine("  " + line);
  }
  if (options.json) PrintJson(all);
  return code;
}

}  // namespace deja::cli
