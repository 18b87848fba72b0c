#include "cli/replay/debugger/gdb_session.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/events/rank_summary.h"
#include "cli/install_layout.h"
#include "cli/replay/bounds/checkpoint_choice.h"
#include "common/env_vars.h"
#include "format/reader/checkpoints.h"
#include "format/wire/batch_info.h"

namespace deja::cli {
namespace {

using format::EventKind;
using format::KindBit;
using nlohmann::json;

constexpr size_t kMaxNotes = 1000;

json ToJson(const format::RecordedCheckpoint& checkpoint,
            const std::map<uint32_t, uint64_t>& operations) {
  json last = json::object();
  for (const auto& [comm, seq] : operations) last[std::to_string(comm - 1)] = seq;
  return {{"number", checkpoint.number},
          {"step", checkpoint.step},
          {"bytes", checkpoint.bytes},
          {"last_operations", last}};
}

// Those that a replay can start at, each with the last operation before it on each communicator.
Result<json> Checkpoints(format::Trace& trace, int attempt, const format::RankReader& reader,
                         const std::vector<DamagedCheckpoint>& damaged) {
  std::string why;
  DEJA_ASSIGN_OR_RETURN(const auto starts,
                        ReplayStarts(trace, ~uint64_t{0}, attempt, {reader.header().rank}, why));
  std::set<uint64_t> steps;
  for (const ReplayStart& start : starts) steps.insert(start.step);
  for (const DamagedCheckpoint& one : damaged) steps.erase(one.step);
  std::vector<format::RecordedCheckpoint> usable;
  for (format::RecordedCheckpoint& checkpoint : format::ReadCheckpoints(reader))
    if (checkpoint.complete() && steps.contains(checkpoint.step))
      usable.push_back(std::move(checkpoint));
  std::vector<std::map<uint32_t, uint64_t>> operations(usable.size());
  const auto raise = [](uint64_t& last, uint64_t seq) { last = std::max(last, seq); };
  const auto cursor = reader.Events();
  while (!usable.empty()) {
    const format::Event* event = cursor->NextOf(KindBit(EventKind::kCallEnter));
    if (event == nullptr) break;
    const auto* enter = event->As<format::CallEnter>();
    if (enter->comm == 0 || enter->comm_seq == 0) continue;
    // The first checkpoint after it; those that follow are after that one.
    const auto next = std::partition_point(
        usable.begin(), usable.end(), [&](const format::RecordedCheckpoint& checkpoint) {
          return checkpoint.IsBehind(event->thread, event->seq, event->time_ns);
        });
    if (next != usable.end())
      raise(operations[static_cast<size_t>(next - usable.begin())][enter->comm], enter->comm_seq);
  }
  for (size_t i = 1; i < usable.size(); ++i)
    for (const auto& [comm, seq] : operations[i - 1]) raise(operations[i][comm], seq);
  json all = json::array();
  for (size_t i = 0; i < usable.size(); ++i) all.push_back(ToJson(usable[i], operations[i]));
  return all;
}

json Notes(const format::RankReader& reader) {
  json notes = json::array();
  json step;
  const auto cursor = reader.Events();
  constexpr uint64_t kKinds = KindBit(EventKind::kNote) | KindBit(EventKind::kStep);
  while (const format::Event* event = cursor->NextOf(kKinds)) {
    if (const auto* begun = event->As<format::Step>()) step = begun->step;
    const auto* note = event->As<format::Note>();
    if (note != nullptr && notes.size() < kMaxNotes)
      notes.push_back({{"step", step}, {"text", std::string(note->text)}});
  }
  return notes;
}

// By communicator.
json LastOperations(const RankSummary& summary) {
  json last = json::object();
  for (const auto& [number, comm] : summary.comms) last[std::to_string(number)] = comm.last_seq;
  return last;
}

// What says whether the bytes of a checkpoint can be read, but for its step.
json VerifyCommand(const format::Trace& trace, int attempt, uint32_t rank) {
  std::error_code error;
  const std::string directory = std::filesystem::absolute(trace.directory(), error).string();
  json command = {OwnPath(), "verify", directory, "--json", "--rank", std::to_string(rank)};
  if (attempt >= 0) command.insert(command.end(), {"--attempt", std::to_string(attempt)});
  command.push_back("--checkpoint");
  return command;
}

// 0: from the start.
uint64_t FromCheckpoint(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = env::kFromCheckpoint.prefix;
  for (const std::string& entry : environment)
    if (entry.compare(0, kName.size(), kName) == 0)
      return std::strtoull(entry.c_str() + kName.size(), nullptr, 10);
  return 0;
}

}  // namespace

Status WriteGdbSession(format::Trace& trace, int attempt, const ReplayTarget& target,
                       const std::vector<DamagedCheckpoint>& damaged, const std::string& child) {
  DEJA_ASSIGN_OR_RETURN(
      const format::RankReader* reader,
      child.empty() ? trace.Rank(target.rank, attempt) : trace.Child(target.rank, child, attempt));
  json checkpoints = json::array();
  if (child.empty()) {
    DEJA_ASSIGN_OR_RETURN(checkpoints, Checkpoints(trace, attempt, *reader, damaged));
  }
  const RankSummary summary = ReadRankSummary(*reader);
  const json session = {{"deja", OwnPath()},
                        {"from_checkpoint", FromCheckpoint(target.environment)},
                        {"checkpoints", checkpoints},
                        {"rank", target.rank},
                        {"child", child},
                        {"verify", VerifyCommand(trace, attempt, target.rank)},
                        {"last_step", summary.last_step ? json(*summary.last_step) : json()},
                        {"last_operations", LastOperations(summary)},
                        {"notes", Notes(*reader)}};
  const std::string path = target.scratch + "/session.json";
  std::ofstream out(path);
  out << session.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
  out.close();
  if (!out) return FailErrno("writing: " + path, errno);
  return {};
}

}  // namespace deja::cli
