// deja replay: runs recorded ranks again, alone or side by side, and says whether they did the
// same.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "cli/commands/command.h"
#include "cli/devices/cuda_probe.h"
#include "cli/events/rank_summary.h"
#include "cli/fence/fence_keeper.h"
#include "cli/fence/trust_store.h"
#include "cli/output.h"
#include "cli/record/trace_claim.h"
#include "cli/record/trace_sweep.h"
#include "cli/replay/debugger/child_debugging.h"
#include "cli/replay/debugger/gdb_session.h"
#include "cli/replay/fold/fold_plan.h"
#include "cli/replay/fold/process_checkpoint.h"
#include "cli/replay/start/bundle_start_check.h"
#include "cli/replay/start/checkpoint_choice.h"
#include "cli/replay/start/consent.h"
#include "cli/replay/start/rank_target.h"
#include "cli/replay/start/replay_fence.h"
#include "cli/replay/start/replay_launch.h"
#include "cli/replay/start/scratch_folder.h"
#include "cli/replay/start/stop_condition.h"
#include "cli/replay/watch/child_outputs.h"
#include "cli/replay/watch/replay_processes.h"
#include "cli/replay/watch/replay_verdict.h"
#include "cli/summaries/window_summary.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

struct ReplayArguments {
  std::string trace;
  int rank = -1;
  int attempt = -1;
  std::string child;
  std::string ranks;
  bool all = false;
  bool compute = false;
  uint32_t devices = 0;
  size_t turns = 0;
  std::string on_divergence = "stop";
  std::string clock = "served";
  int64_t from_step = -1;
  UntilOptions until;
  bool gdb = false;
  bool stacks = false;
  std::vector<std::string> gdb_commands;
  std::string process_checkpoint;
  std::string out;
  std::string scratch;
  bool keep_scratch = false;
  bool force = false;
  bool trust = false;
  std::string program;
  std::vector<std::string> allow_read;
  std::vector<std::string> allow_file;
  bool allow_writes = false;
  bool allow_network = false;
  std::vector<std::string> pass_env;
  std::vector<std::string> binaries;
};
ReplayArguments g_replay_options;

void AddReplayOptions(CLI::App& app) {
  app.add_option("TRACE", g_replay_options.trace, "A trace directory or a bundle")->required();
  auto* rank = app.add_option("--rank", g_replay_options.rank,
                              "The rank to replay, alone; not needed if there is only one")
                   ->check(CLI::NonNegativeNumber);
  auto* ranks =
      app.add_option("--ranks", g_replay_options.ranks, "Ranks to replay side by side: A-B");
  auto* all = app.add_flag("--all", g_replay_options.all, "Replay all recorded ranks side by side");
  rank->excludes(ranks)->excludes(all);
  ranks->excludes(all);
  auto* compute = app.add_flag(
      "--compute", g_replay_options.compute,
      "Let the ranks compute their collectives among themselves, in the order of NCCL's "
      "ring, even if the trace has the results; they are compared with it");
  auto* devices =
      app.add_option(
             "--devices", g_replay_options.devices,
             "Use so many CUDA devices, in turn, for all that the recorded job had; the program "
             "sees one for each rank of its machine. Ranks whose memory does not fit on a device "
             "together take turns, if the driver (570 and later) can swap processes out")
          ->check(CLI::PositiveNumber);
  app.add_option(
         "--turns", g_replay_options.turns,
         "With --devices: so many ranks at most on a device as soon as others wait for them, "
         "instead of as many as fit")
      ->check(CLI::PositiveNumber)
      ->needs(devices);
  app.add_option("--attempt", g_replay_options.attempt,
                 "Which run of a restarted rank; the last one if not given");
  auto* from = app.add_option("--from-step", g_replay_options.from_step,
                              "Start at the latest checkpoint at or before this step (deja record "
                              "--checkpoint-every) that all ranks have")
                   ->check(CLI::NonNegativeNumber);
  auto* step = app.add_option("--until-step", g_replay_options.until.step,
                              "End where this step begins (with --gdb: stop there); unless "
                              "--from-step is given, start at the latest checkpoint before it");
  auto* seq = app.add_option("--until-seq", g_replay_options.until.seq,
                             "The same for the operation with this number, before it is served")
                  ->check(CLI::PositiveNumber);
  step->excludes(seq);
  app.add_option(
         "--comm", g_replay_options.until.comm,
         "Communicator of --until-seq; the one that comes to that number first if not given")
      ->needs(seq);
  auto* child =
      app.add_option("--child", g_replay_options.child,
                     "A process that the rank has made, as deja info names it (0/3): it alone is "
                     "shown and judged, in gdb it alone is stopped; the whole rank runs for it, "
                     "until it has ended");
  for (auto* other : {ranks, all, compute, devices, from, step, seq}) child->excludes(other);
  app.add_option("--on-divergence", g_replay_options.on_divergence,
                 "stop: end at the first difference; warn: report it and go on")
      ->check(CLI::IsMember({"stop", "warn"}))
      ->capture_default_str();
  app.add_flag("--stacks", g_replay_options.stacks,
               "Where a program of Python diverges, show the native frames, too");
  app.add_option("--clock", g_replay_options.clock,
                 "served: all clocks are told as recorded; day: only the time of day; live: none")
      ->check(CLI::IsMember({"served", "day", "live"}))
      ->capture_default_str();
  app.add_flag("--gdb", g_replay_options.gdb, "Replay in gdb, with Deja's commands (deja help)");
  app.add_option("--gdb-command", g_replay_options.gdb_commands,
                 "With --gdb: run this command, and end after the last one (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--process-checkpoint", g_replay_options.process_checkpoint,
                 "Write an image of the whole process at the place of --until-step or --until-seq "
                 "into this new folder, by CRIU; says why if this machine cannot");
  app.add_option("-o,--out", g_replay_options.out,
                 "Leave a trace of what the replayed program does there, to be compared with the "
                 "recording: deja diff TRACE OUT, deja bisect TRACE OUT");
  app.add_option("--scratch", g_replay_options.scratch,
                 "Empty folder for what the program writes; a temporary one if not given");
  app.add_flag("--keep-scratch", g_replay_options.keep_scratch,
               "Do not remove that folder at the end");
  app.add_flag("--allow-writes", g_replay_options.allow_writes,
               "Let the program change files where they are, instead of copies in the scratch "
               "folder: it may overwrite what the recorded job left, checkpoints too");
  app.add_flag("--allow-network", g_replay_options.allow_network,
               "Let the program make connections that the trace does not serve");
  app.add_option("--pass-env", g_replay_options.pass_env,
                 "Give the program this environment's value of a variable that is masked in the "
                 "trace, e.g. --pass-env HF_TOKEN (repeatable)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--trust", g_replay_options.trust,
               "Run what a trace names that was not recorded or packed here by you; remembered for "
               "this trace");
  app.add_option("--allow-read", g_replay_options.allow_read,
                 "Let the program of such a trace read this file or folder, too (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--allow-file", g_replay_options.allow_file,
                 "Let what reaches files past the C library (a GPU's driver) write this file or "
                 "folder where it is (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--program", g_replay_options.program,
                 "Where the recorded program is here, as behind `--`")
      ->allow_extra_args(false);
  app.add_flag("--force", g_replay_options.force, "Replay a program with another build id");
  app.add_option("--binaries", g_replay_options.binaries,
                 "Folders with the program's binaries, for names in stacks");
}

// "A-B" or "A".
Result<std::pair<uint32_t, uint32_t>> ParseRankRange(const std::string& text) {
  uint32_t first = 0;
  uint32_t last = 0;
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, first);
  bool ok = error == std::errc();
  last = first;
  if (ok && at != end) {
    ok = *at == '-';
    auto second = std::from_chars(at + 1, end, last);
    ok = ok && second.ec == std::errc() && second.ptr == end && last >= first;
  }
  if (!ok)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--ranks {}: give a range such as 0-3", text));
  return std::pair{first, last};
}

Result<std::vector<uint32_t>> ChosenRanks(const format::Trace& trace) {
  std::set<uint32_t> there;
  for (const format::RankFolder& folder : trace.ranks()) there.insert(folder.rank);
  if (g_replay_options.all) return std::vector<uint32_t>(there.begin(), there.end());
  if (g_replay_options.rank >= 0)
    return std::vector<uint32_t>{static_cast<uint32_t>(g_replay_options.rank)};
  if (g_replay_options.ranks.empty() && there.size() <= 1)
    return std::vector<uint32_t>(there.begin(), there.end());
  if (g_replay_options.ranks.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} has {} ranks: say what to replay: --rank R, --ranks A-B or --all",
                            trace.path(), there.size()));
  DEJA_ASSIGN_OR_RETURN(const auto range, ParseRankRange(g_replay_options.ranks));
  std::vector<uint32_t> chosen;
  for (uint32_t rank : there)
    if (rank >= range.first && rank <= range.second) chosen.push_back(rank);
  // Trace::Rank words the error for one that is not there.
  if (chosen.size() != static_cast<size_t>(range.second) - range.first + 1)
    for (uint64_t rank = range.first; rank <= range.second; ++rank)
      if (there.count(static_cast<uint32_t>(rank)) == 0) {
        chosen.push_back(static_cast<uint32_t>(rank));
        break;
      }
  return chosen;
}

// The folder of ranks that compute their collectives; empty: everything is served.
Result<std::string> PrepareFold(format::Trace& trace, const std::vector<uint32_t>& ranks,
                                const std::string& scratch) {
  std::vector<const format::RankReader*> readers;
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader,
                          trace.Rank(rank, g_replay_options.attempt));
    readers.push_back(reader);
  }
  DEJA_ASSIGN_OR_RETURN(const FoldPlan plan, PlanFold(readers, g_replay_options.compute));
  if (!plan.computes()) return std::string();
  return MakeMeetingFolder(plan, scratch);
}

// Of the machine of each of `ranks`; nothing where nobody wants to know.
Result<std::vector<uint32_t>> CountDevices(format::Trace& trace,
                                           const std::vector<uint32_t>& ranks) {
  if (g_replay_options.devices == 0) return std::vector<uint32_t>();
  std::map<uint32_t, const format::RankReader*> job;
  for (const format::RankFolder& folder : trace.ranks()) {
    DEJA_ASSIGN_OR_RETURN(job[folder.rank], trace.Rank(folder.rank));
  }
  std::vector<const format::RankReader*> all;
  std::vector<const format::RankReader*> chosen;
  all.reserve(job.size());
  chosen.reserve(ranks.size());
  for (const auto& [rank, reader] : job) all.push_back(reader);
  for (const uint32_t rank : ranks) chosen.push_back(job.at(rank));
  return RecordedDevices(chosen, all);
}

// All peers' stories, for ranks that wait for somebody who never came.
std::vector<PeerSummary> ReadPeers(format::Trace& trace) {
  std::vector<PeerSummary> peers;
  for (const format::RankFolder& folder : trace.ranks()) {
    auto reader = trace.Rank(folder.rank);
    if (reader && (peers.empty() || peers.back().rank != folder.rank))
      peers.push_back({folder.rank, ReadRankSummary(**reader)});
  }
  return peers;
}

// Said before, since it decides how far the replay can come.
void SayWhatIsKept(const format::RankReader& reader) {
  if (reader.totals().payloads_dropped == 0) return;
  const WindowSummary window = ReadWindowSummary(reader);
  Diagnose(
      fmt::format("rank {}: {}; from the start the replay goes as far as the first result "
                  "that is not kept",
                  reader.header().rank, window.Describe()));
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

int Report(format::Trace& trace, const std::vector<Replayed>& replays, const Context& context) {
  Symbolizer symbolizer;
  for (const std::string& directory : g_replay_options.binaries) symbolizer.AddDirectory(directory);
  for (const Replayed& replay : replays)
    symbolizer.AddDirectory(fs::path(replay.target.executable).parent_path().string());
  const std::vector<PeerSummary> peers = ReadPeers(trace);
  nlohmann::json all = {{"trace", trace.path()}, {"ranks", nlohmann::json::array()}};
  int code = kExitOk;
  for (const Replayed& replay : replays) {
    const RankSummary summary = ReadRankSummary(*replay.reader);
    const StackDetail detail =
        g_replay_options.stacks ? StackDetail::kNative : StackDetail::kPython;
    ReplayVerdict verdict = replay.child.empty()
                                ? JudgeReplay(*replay.reader, summary, peers, replay.target.scratch,
                                              replay.status, symbolizer, detail)
                                : JudgeChild(replay.target.rank, replay.child, *replay.child_reader,
                                             replay.target.scratch, symbolizer, detail);
    AddShortage(replay.shortage, verdict);
    AddStandstill(replay.standstill, verdict);
    if (verdict.outcome != Outcome::kSame) {
      if (UsedCuda(summary)) LookForDevice(replay.target, verdict);
      AddChanges(WhatChanged(ReadProgramParts(*replay.reader)), trace.path(), verdict);
    }
    all["ranks"].push_back(verdict.json);
    if (verdict.outcome == Outcome::kFailed) {
      code = kExitFailure;
    } else if (verdict.outcome == Outcome::kDiverged && code != kExitFailure) {
      code = kExitDiverged;
    } else if (verdict.data_lost && code == kExitOk) {
      code = kExitDataLoss;
    }
    if (context.json) continue;
    const std::string child = replay.child.empty() ? "" : ", child " + replay.child;
    PrintLine(fmt::format("rank {}{}: {}", replay.target.rank, child, verdict.summary));
    for (const std::string& line : verdict.details) PrintLine("  " + line);
  }
  if (context.json) PrintJson(all);
  return code;
}

// Where each rank shall end; nothing if they shall go on.
Result<std::vector<ReplayUntil>> FindEnds(format::Trace& trace,
                                          const std::vector<uint32_t>& ranks) {
  std::vector<ReplayUntil> ends;
  if (!g_replay_options.until.any()) return ends;
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader,
                          trace.Rank(rank, g_replay_options.attempt));
    DEJA_ASSIGN_OR_RETURN(ReplayUntil end, FindUntil(*reader, g_replay_options.until));
    ends.push_back(std::move(end));
  }
  return ends;
}

// Without a checkpoint the replay starts at the start, which comes to the same in more time.
Result<SoundStart> ChooseStart(format::Trace& trace, const std::vector<uint32_t>& ranks,
                               const std::vector<ReplayUntil>& ends) {
  std::optional<uint64_t> step;
  if (g_replay_options.from_step >= 0)
    step = static_cast<uint64_t>(g_replay_options.from_step);
  else if (!ends.empty())
    step = std::min_element(ends.begin(), ends.end(), [](const auto& a, const auto& b) {
             return a.from_step < b.from_step;
           })->from_step;
  if (!step) return SoundStart();
  std::string why;
  DEJA_ASSIGN_OR_RETURN(SoundStart found,
                        FindSoundStart(trace, *step, ranks, g_replay_options.attempt, why));
  for (const DamagedCheckpoint& damaged : found.damaged) Diagnose(damaged.Text());
  if (found.start)
    Diagnose(fmt::format("from the checkpoint at step {}", found.start->step));
  else if (g_replay_options.from_step >= 0)
    Diagnose(fmt::format("from the start: {}", why));
  return found;
}

// Of a smaller copy of a trace that does not have what a replay from its start needs.
Status CheckStart(format::Trace& trace, const std::vector<uint32_t>& ranks,
                  const std::vector<ReplayUntil>& ends) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader,
                          trace.Rank(ranks[i], g_replay_options.attempt));
    const auto missing = FindLeftOutStart(*reader);
    const bool ends_before = missing && !ends.empty() && ends[i].time_ns <= missing->time_ns;
    if (missing && !ends_before)
      return tl::unexpected(CannotStart(trace, ranks[i], g_replay_options.attempt, *missing));
  }
  return {};
}

// What the programs have left of their own traces is completed. False: there is none.
bool FinishTrace(TraceClaim& claim, const std::vector<Replayed>& replays) {
  std::vector<ProcessEnd> ends;
  for (const Replayed& replay : replays) {
    ProcessEnd end;
    end.pid = replay.pid;
    if (WIFSIGNALED(replay.status))
      end.signal = WTERMSIG(replay.status);
    else
      end.exit_code = WEXITSTATUS(replay.status);
    ends.push_back(end);
  }
  const std::vector<SweptRank> ranks = SweepTrace(claim.directory(), ends, true);
  for (const SweptRank& rank : ranks)
    if (!rank.error.empty()) Diagnose(fmt::format("rank {}: {}", rank.rank, rank.error));
  claim.RemoveIfEmpty();
  if (ranks.empty()) Diagnose("the replay has left no trace in " + claim.directory());
  return !ranks.empty();
}

// Nothing of a trace is run before.
Status CheckConsent(const std::vector<Replayed>& replays) {
  if (TrustStore().Of(g_replay_options.trace) != Trust::kNone) return {};
  std::vector<const ReplayTarget*> targets;
  targets.reserve(replays.size());
  for (const Replayed& replay : replays) targets.push_back(&replay.target);
  return AskConsent(g_replay_options.trace, targets, g_replay_options.trust);
}

int DebugReplay(format::Trace& trace, const Replayed& replay, const ReplayOptions& options,
                const std::string& first, const SoundStart& start) {
  const ReplayTarget& target = replay.target;
  for (const std::string& note : target.notes) Diagnose(note);
  if (Status written =
          WriteGdbSession(trace, g_replay_options.attempt, target, start.damaged, replay.child);
      !written)
    return FailWith(written.error());
  const std::vector<std::string>& commands = g_replay_options.gdb_commands;
  auto code = replay.child.empty() ? RunGdb(target, first, commands)
                                   : DebugChild(replay, options, commands);
  return code ? *code : FailWith(code.error());
}

// Nothing: no trace of the replay is wanted.
Result<std::optional<TraceClaim>> ClaimOut() {
  std::optional<TraceClaim> none;
  if (g_replay_options.out.empty()) return none;
  std::error_code error;
  std::string out = fs::absolute(g_replay_options.out, error).lexically_normal().string();
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  if (fs::exists(out, error))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is there already; give another --out", out));
  DEJA_ASSIGN_OR_RETURN(TraceClaim claim, TraceClaim::Make(out, false));
  return std::optional<TraceClaim>(std::move(claim));
}

void AddOut(const TraceClaim& claim, std::vector<std::string>& environment) {
  std::error_code error;
  environment.push_back("DEJA_OUT=" + claim.directory());
  environment.push_back("DEJA_JOB_ID=" + claim.job_id());
  environment.push_back("DEJA_RECORDING=" + fs::absolute(g_replay_options.trace, error).string());
}

int Usage(const std::string& message) {
  Diagnose(message);
  return kExitUsage;
}

// What speaks against --process-checkpoint, before anything is started; empty: nothing.
std::string ProcessCheckpointMistake(const std::vector<uint32_t>& ranks) {
  const std::string option = "--process-checkpoint ";
  if (ranks.size() > 1) return option + "needs --rank: it is of one process";
  if (!g_replay_options.until.any()) return option + "needs --until-step or --until-seq: the place";
  if (g_replay_options.gdb)
    return option + "needs a replay without --gdb: criu refuses traced processes";
  if (!g_replay_options.out.empty()) return option + "needs a replay without --out";
  if (!g_replay_options.child.empty()) return option + "needs a replay without --child";
  return {};
}

// The folder of the image has the scratch folder in it, without which the image is of no use.
Status PrepareProcessCheckpoint() {
  DEJA_RETURN_IF_ERROR(CheckProcessCheckpoints());
  std::error_code error;
  std::string& folder = g_replay_options.process_checkpoint;
  folder = fs::absolute(folder, error).lexically_normal().string();
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is not empty; give another --process-checkpoint", folder));
  fs::create_directories(folder + "/images", error);
  if (error) return FailErrno("making " + folder + "/images", error.value());
  if (g_replay_options.scratch.empty()) g_replay_options.scratch = folder + "/scratch";
  return {};
}

int MakeProcessCheckpoint(const ReplayTarget& target, const ReplayOptions& options) {
  for (const std::string& note : target.notes) Diagnose(note);
  auto pid = StartReplay(target, options);
  if (!pid) return FailWith(pid.error());
  auto place = WaitUntilHeld(*pid, target.scratch);
  if (!place) return FailWith(place.error());
  const std::string images = g_replay_options.process_checkpoint + "/images";
  if (Status dumped = DumpProcess(*pid, images); !dumped) return FailWith(dumped.error());
  PrintLine(fmt::format("rank {}: process {} at {} is in {}", target.rank, *pid, *place, images));
  Diagnose(RestoreText(*pid, images, target.scratch));
  return kExitOk;
}

int RunReplay(const Context& context) {
  if (!g_replay_options.gdb_commands.empty()) g_replay_options.gdb = true;
  auto trace = format::Trace::Open(g_replay_options.trace);
  if (!trace) return FailWith(trace.error());
  auto ranks = ChosenRanks(**trace);
  if (!ranks) {
    Diagnose(ranks.error().message);
    return kExitUsage;
  }
  if (g_replay_options.gdb && ranks->size() > 1)
    return Usage("--gdb needs --rank: it shows one program");
  if (g_replay_options.gdb && !g_replay_options.out.empty())
    return Usage(
        "--out needs a replay without --gdb: in gdb a program goes back and forth, and a trace "
        "would "
        "hold what it did there as if it had happened; replay it without --gdb for the trace");
  const bool has_child = !g_replay_options.child.empty();
  if (has_child && ranks->size() != 1) return Usage("--child needs --rank: it is of one rank");
  if (has_child && !g_replay_options.out.empty())
    return Usage("--out needs a replay without --child: it holds what ranks do");
  const bool checkpoints_process = !g_replay_options.process_checkpoint.empty();
  if (checkpoints_process) {
    if (const std::string why = ProcessCheckpointMistake(*ranks); !why.empty()) return Usage(why);
    if (Status able = PrepareProcessCheckpoint(); !able) return FailWith(able.error());
  }
  auto claim = ClaimOut();
  if (!claim) return FailWith(claim.error());
  ScratchFolder scratch;
  if (Status opened = scratch.Open(g_replay_options.scratch, g_replay_options.keep_scratch);
      !opened)
    return FailWith(opened.error());

  ReplayOptions options;
  options.program = context.program;
  if (!g_replay_options.program.empty()) options.program = {g_replay_options.program};
  options.force = g_replay_options.force;
  options.allow_writes = g_replay_options.allow_writes;
  options.allow_network = g_replay_options.allow_network;
  options.pass_env = g_replay_options.pass_env;
  options.warn_on_divergence = g_replay_options.on_divergence == "warn";
  options.clock = g_replay_options.clock;
  options.program_output_to_stderr = context.json;
  options.quiet_stdin = ranks->size() > 1 || checkpoints_process;
  options.child = g_replay_options.child;
  auto ends = FindEnds(**trace, *ranks);
  if (!ends) return FailWith(ends.error());
  auto start = ChooseStart(**trace, *ranks, *ends);
  if (!start) return FailWith(start.error());
  auto fold = PrepareFold(**trace, *ranks, scratch.path());
  if (!fold) return FailWith(fold.error());
  options.fold = *fold;
  FenceKeeper keeper;
  const ReplayFence fence{g_replay_options.trace,      (*trace)->directory(),
                          g_replay_options.out,        g_replay_options.allow_read,
                          g_replay_options.allow_file, checkpoints_process};
  if (Status made = MakeFence(fence, scratch, keeper, options); !made)
    return FailWith(made.error());
  if (!start->start && options.fold.empty())
    if (Status able = CheckStart(**trace, *ranks, *ends); !able) return FailWith(able.error());
  auto devices = CountDevices(**trace, *ranks);
  if (!devices) return FailWith(devices.error());
  std::optional<SharedArea> shared;
  if ((g_replay_options.devices != 0 || !options.fold.empty()) && ranks->size() > 1) {
    auto area = TurnArea::Create(scratch.TurnFile(), static_cast<uint32_t>(ranks->size()));
    if (!area) return FailWith(area.error());
    area->schedules().store(g_replay_options.devices != 0 ? 1 : 0);
    shared = SharedArea{*area, g_replay_options.devices != 0, g_replay_options.turns};
  }
  std::vector<Replayed> replays;
  for (uint32_t rank : *ranks) {
    auto reader = (*trace)->Rank(rank, g_replay_options.attempt);
    if (!reader) return FailWith(reader.error());
    auto own = scratch.ForRank(rank);
    if (!own) return FailWith(own.error());
    auto target = PrepareRank(**trace, rank, g_replay_options.attempt, *own, options);
    if (!target) return FailWith(target.error());
    if (std::error_code error; fs::is_regular_file(g_replay_options.trace, error))
      target->environment.push_back("DEJA_REPLAY_NAME=" + g_replay_options.trace);
    if (start->start)
      target->environment.push_back(
          fmt::format("DEJA_FROM_CHECKPOINT={}", start->start->numbers.at(rank)));
    if (!ends->empty() && !g_replay_options.gdb)
      for (std::string& variable : (*ends)[replays.size()].environment)
        target->environment.push_back(std::move(variable));
    if (checkpoints_process) target->environment.emplace_back("DEJA_HOLD=1");
    if (g_replay_options.devices != 0)
      UseDevices(g_replay_options.devices, (*devices)[replays.size()], target->environment);
    if (shared)
      target->environment.push_back(
          fmt::format("DEJA_TURNS={}:{}", replays.size(), scratch.TurnFile()));
    if (*claim) AddOut(**claim, target->environment);
    if (g_replay_options.gdb) target->environment.emplace_back("DEJA_GDB=1");
    Replayed replay;
    replay.reader = *reader;
    replay.target = std::move(*target);
    if (has_child) {
      auto child = (*trace)->Child(rank, options.child, g_replay_options.attempt);
      if (!child) return FailWith(child.error());
      replay.child = options.child;
      replay.child_reader = *child;
    }
    replays.push_back(std::move(replay));
  }
  if (replays.empty())
    return FailWith({ErrorCode::kNotFound,
                     fmt::format("replaying {}: there is no rank in it", g_replay_options.trace)});
  if (Status agreed = CheckConsent(replays); !agreed) {
    Diagnose(agreed.error().message);
    return kExitUsage;
  }
  if (g_replay_options.gdb)
    return DebugReplay(**trace, replays[0], options, ends->empty() ? "" : ends->front().gdb_command,
                       *start);
  if (checkpoints_process) return MakeProcessCheckpoint(replays[0].target, options);
  for (const Replayed& replay : replays) {
    SayWhatIsKept(*replay.reader);
    for (const std::string& note : replay.target.notes) Diagnose(note);
  }
  std::unique_ptr<ChildOutputs> outputs;
  if (has_child) {
    auto made = ChildOutputs::Make(replays[0].target.scratch, context.json);
    if (!made) return FailWith(made.error());
    outputs = std::move(*made);
    options.outputs = outputs->of_rank();
  }
  if (Status started = StartReplays(replays, options); !started) return FailWith(started.error());
  WaitForReplays(replays, options, shared);
  outputs.reset();
  const bool left_trace = *claim && FinishTrace(**claim, replays);
  const int code = Report(**trace, replays, context);
  if (left_trace)
    Diagnose(fmt::format("next: deja diff {} {}", g_replay_options.trace, g_replay_options.out));
  return code;
}

}  // namespace

extern const Command kReplayCommand;
const Command kReplayCommand = {
    "replay",
    "Run recorded ranks again, bit for bit, and compare",
    "  deja replay run.deja --rank 2          alone: its peers' data comes from the trace\n"
    "  deja replay run.deja --rank 2 --gdb    the same in gdb, with Deja's commands\n"
    "  deja replay run.deja --rank 2 --from-step 4800      from the last checkpoint before it\n"
    "  deja replay run.deja --rank 2 --until-step 4810     from the last checkpoint to that step\n"
    "  deja replay run.deja --rank 2 --until-step 4810 --process-checkpoint image    the process "
    "there, by CRIU\n"
    "  deja replay run.deja --ranks 0-3       side by side\n"
    "  deja replay run.deja --all --devices 1    all ranks on one GPU, in turns if they do "
    "not fit together\n"
    "  deja replay run.deja --all --compute   all ranks on this machine: they compute their "
    "collectives\n"
    "  deja replay run.deja --rank 2 --on-divergence warn --out again.deja    then: deja diff "
    "run.deja again.deja\n"
    "  deja replay run.deja --rank 2 --child 0/3 --gdb    a loader worker of it (deja info names "
    "them)\n"
    "  deja replay single.deja                the only rank of a trace\n"
    "  deja replay run.deja.zip --rank 2 -- build/train    the program is somewhere else\n",
    true,
    AddReplayOptions,
    RunReplay,
};

}  // namespace deja::cli
