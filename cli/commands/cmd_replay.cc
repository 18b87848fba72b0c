// deja replay: runs recorded ranks again, alone or side by side, and says whether they did the
// same.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/events/rank_summary.h"
#include "cli/fence/fence_keeper.h"
#include "cli/interruption.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/own_variables.h"
#include "cli/replay/bounds/replay_arguments.h"
#include "cli/replay/bounds/replay_bounds.h"
#include "cli/replay/debugger/child_debugging.h"
#include "cli/replay/debugger/debugpy.h"
#include "cli/replay/debugger/gdb_launch.h"
#include "cli/replay/debugger/gdb_session.h"
#include "cli/replay/debugger/python_debugging.h"
#include "cli/replay/debugger/tools.h"
#include "cli/replay/debugger/vscode.h"
#include "cli/replay/fold/fold_plan.h"
#include "cli/replay/fold/process_checkpoint.h"
#include "cli/replay/start/consent.h"
#include "cli/replay/start/rank_target.h"
#include "cli/replay/start/replay_fence.h"
#include "cli/replay/start/replay_launch.h"
#include "cli/replay/start/scratch_folder.h"
#include "cli/replay/verdict/replay_results.h"
#include "cli/replay/watch/child_outputs.h"
#include "cli/replay/watch/guardian.h"
#include "cli/replay/watch/recorded_silence.h"
#include "cli/replay/watch/replay_processes.h"
#include "cli/replay/watch/replay_trace.h"
#include "cli/summaries/trace_damage.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

ReplayArguments g_replay_options;

void AddReplayOptions(CLI::App& app) {
  AddReplayArguments(app, g_replay_options);
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

// The number of devices that each of `ranks` had when recorded; empty unless --devices is given.
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

int DebugReplay(format::Trace& trace, const Replayed& replay, const ReplayOptions& options,
                const std::string& first, const SoundStart& start) {
  const ReplayTarget& target = replay.target;
  for (const std::string& note : target.notes) Diagnose(note);
  if (Status written =
          WriteGdbSession(trace, g_replay_options.attempt, target, start.damaged, replay.child);
      !written)
    return FailWith(written.error());
  const GdbOptions gdb{g_replay_options.debugger,
                       CLI::detail::split_up(g_replay_options.debugger_args),
                       g_replay_options.interpreter, first, g_replay_options.gdb_commands};
  auto code = replay.child.empty() ? RunGdb(target, gdb) : DebugChild(replay, options, gdb);
  return code ? *code : FailWith(code.error());
}

int ServeDebugger(const ReplayTarget& target) {
  for (const std::string& note : target.notes) Diagnose(note);
  auto code = RunGdbServer(target, g_replay_options.gdbserver);
  return code ? *code : FailWith(code.error());
}

int PrepareVsCode(const Context& context, const ReplayTarget& target) {
  std::ifstream in("/proc/self/cmdline");
  VsCodeReplay replay{g_replay_options.trace, target.rank, target.executable, {}};
  for (std::string word; std::getline(in, word, '\0');) replay.command.push_back(word);
  std::error_code error;
  auto files = WriteVsCode(replay, fs::current_path(error).string());
  if (!files) return FailWith(files.error());
  if (context.json) {
    nlohmann::json written{
        {"launch", files->launch}, {"script", files->script}, {"name", files->name}};
    if (!files->python_name.empty())
      written.update({{"python_name", files->python_name}, {"python_first", files->python_first}});
    PrintJson(written);
    return kExitOk;
  }
  PrintLine(
      fmt::format("{}: \"{}\"; in VS Code: Run and Debug, choose it, start it; "
                  "`-exec deja help` in its debug console lists Deja's commands",
                  files->launch, files->name));
  if (!files->python_name.empty())
    PrintLine(fmt::format("{}: \"{}\"; run first: {}", files->launch, files->python_name,
                          files->python_first));
  return kExitOk;
}

int Usage(const std::string& message) {
  Diagnose(message);
  return kExitUsage;
}

// The folder of the image has the scratch folder in it, without which the image is of no use.
Status PrepareProcessCheckpoint() {
  DEJA_RETURN_IF_ERROR(CheckProcessCheckpoints());
  std::error_code error;
  std::string& folder = g_replay_options.process_checkpoint;
  folder = fs::absolute(folder, error).lexically_normal().string();
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("replaying: --process-checkpoint {}: the folder is not empty; give a new one",
                    folder));
  fs::create_directories(folder + "/images", error);
  if (error) return FailErrno("making: " + folder + "/images", error.value());
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

// Says of which recordings part cannot be read: of the ranks, and of the children that they make
// again. True: there is one.
bool FindDamagedRecordings(format::Trace& trace, std::vector<Replayed>& replays) {
  struct Given {
    Replayed* to;
    std::string name;
  };
  std::vector<Given> given;
  std::vector<const format::RankReader*> readers;
  for (Replayed& replay : replays) {
    const std::string rank = fmt::format("rank {}", replay.target.rank);
    given.push_back({&replay, rank});
    readers.push_back(replay.reader);
    if (const auto life = trace.LifeBefore(replay.target.rank, g_replay_options.attempt))
      for (const format::ChildFolder& process : *life)
        if (const auto reader = trace.Process(process)) {
          given.push_back({&replay, rank + ", a process that forked it"});
          readers.push_back(*reader);
        }
    for (const auto& [child, reader] :
         ReadableChildren(trace, replay.target.rank, g_replay_options.attempt)) {
      given.push_back({&replay, fmt::format("{}, child {}", rank, child)});
      readers.push_back(reader);
    }
  }
  const std::vector<std::string> damage = FindEventDamage(readers);
  bool any = false;
  for (size_t i = 0; i < given.size(); ++i) {
    if (damage[i].empty()) continue;
    any = true;
    Replayed& replay = *given[i].to;
    if (replay.damage.empty()) replay.damage = damage[i];
    replay.lost_from_ns = std::min(replay.lost_from_ns, FirstLostTime(*readers[i]));
    SayDamaged(given[i].name, damage[i]);
  }
  return any;
}

// Nothing is said of the ranks: how they ended is the user's doing.
int Interrupted(const Context& context, const format::Trace& trace) {
  constexpr int kSignalBase = 128;
  const int end = Interruption::EndOfSession();
  const int signal = end != 0 ? end : Interruption::Signal();
  Diagnose(fmt::format("replaying: {}: interrupted by {}; nothing was compared to its end",
                       trace.path(), SignalName(signal)));
  if (context.json)
    PrintJson({{"trace", trace.path()},
               {"interrupted", SignalName(signal)},
               {"ranks", nlohmann::json::array()}});
  return kSignalBase + signal;
}

// The user has seen enough: no verdict.
int LeftDebugger(const Context& context, const format::Trace& trace) {
  Diagnose(fmt::format("replaying: {}: left in Python's debugger; nothing was compared to its end",
                       trace.path()));
  if (context.json)
    PrintJson({{"trace", trace.path()}, {"left", "pdb"}, {"ranks", nlohmann::json::array()}});
  return kExitOk;
}

// What the options say of how the ranks run; what depends on the trace is not in it yet.
ReplayOptions OptionsOf(const Context& context, size_t ranks) {
  ReplayOptions options;
  options.program = context.program;
  if (!g_replay_options.program.empty()) options.program = {g_replay_options.program};
  options.edited = g_replay_options.edited;
  options.force = g_replay_options.force || options.edited;
  options.allow_writes = g_replay_options.allow_writes;
  options.allow_network = g_replay_options.allow_network;
  options.pass_env = g_replay_options.pass_env;
  options.warn_on_divergence = g_replay_options.on_divergence == "warn" || options.edited;
  // A profiler asks for the time all along.
  const bool live = g_replay_options.profile && g_replay_options.clock == "served";
  options.clock = live ? "day" : g_replay_options.clock;
  options.program_output_to_stderr = context.json;
  options.quiet_stdin = ranks > 1 || !g_replay_options.process_checkpoint.empty();
  options.child = g_replay_options.child;
  options.wait = g_replay_options.wait;
  options.may_pause = options.wait || g_replay_options.debugpy >= 0;
  return options;
}

// All that one replay needs, in the order in which it is made.
struct Preparation {
  std::unique_ptr<format::Trace> trace;
  std::vector<uint32_t> ranks;
  std::optional<TraceClaim> claim;
  ScratchFolder scratch;
  ReplayOptions options;
  std::vector<ReplayUntil> ends;
  SoundStart start;
  FenceKeeper keeper;
  std::vector<uint32_t> devices;
  std::optional<SharedArea> shared;
  std::vector<Replayed> replays;
  uint16_t debugpy = 0;  // port at which an editor finds the rank; 0: none
};

// Where the replay begins and ends, and what it may do.
Status PrepareBounds(Preparation& made) {
  DEJA_ASSIGN_OR_RETURN(made.ends, FindEnds(g_replay_options, *made.trace, made.ranks));
  DEJA_ASSIGN_OR_RETURN(made.start,
                        ChooseStart(g_replay_options, *made.trace, made.ranks, made.ends));
  DEJA_ASSIGN_OR_RETURN(made.options.fold,
                        PrepareFold(*made.trace, made.ranks, made.scratch.path()));
  const ReplayFence fence{
      g_replay_options.trace,      made.trace->directory(),
      g_replay_options.out,        g_replay_options.allow_read,
      g_replay_options.allow_file, !g_replay_options.process_checkpoint.empty()};
  DEJA_RETURN_IF_ERROR(MakeFence(fence, made.scratch, made.keeper, made.options));
  if (!made.start.start && made.options.fold.empty())
    DEJA_RETURN_IF_ERROR(CheckStart(g_replay_options, *made.trace, made.ranks, made.ends));
  return {};
}

// The devices of each rank, and the memory by which ranks that share some take turns.
Status PrepareDevices(Preparation& made) {
  DEJA_ASSIGN_OR_RETURN(made.devices, CountDevices(*made.trace, made.ranks));
  const bool uses_devices = g_replay_options.devices != 0;
  if ((!uses_devices && made.options.fold.empty()) || made.ranks.size() <= 1) return {};
  DEJA_ASSIGN_OR_RETURN(TurnArea area, TurnArea::Create(made.scratch.TurnFile(),
                                                        static_cast<uint32_t>(made.ranks.size())));
  area.schedules().store(uses_devices ? 1 : 0);
  made.shared = SharedArea{area, uses_devices, g_replay_options.turns};
  return {};
}

// What the rank, the `index`-th of the replay, gets beside what was recorded.
void AddVariables(Preparation& made, size_t index, ReplayTarget& target) {
  std::vector<std::string>& environment = target.environment;
  if (std::error_code error; fs::is_regular_file(g_replay_options.trace, error))
    environment.push_back(Entry(env::kReplayName, g_replay_options.trace));
  if (made.start.start)
    environment.push_back(
        Entry(env::kFromCheckpoint, made.start.start->numbers.at(made.ranks[index])));
  if (!made.ends.empty() && !g_replay_options.gdb)
    for (std::string& variable : made.ends[index].environment)
      environment.push_back(std::move(variable));
  if (!g_replay_options.process_checkpoint.empty()) environment.push_back(Entry(env::kHold));
  if (g_replay_options.devices != 0)
    UseDevices(g_replay_options.devices, made.devices[index], environment);
  if (made.shared)
    environment.push_back(Entry(env::kTurns, fmt::format("{}:{}", index, made.scratch.TurnFile())));
  if (made.claim) AddOut(*made.claim, g_replay_options.trace, environment);
  if (g_replay_options.gdb) environment.push_back(Entry(env::kGdb));
}

// kInvalidArgument: the options do not fit the rank's program.
Status PrepareRanks(Preparation& made) {
  for (const uint32_t rank : made.ranks) {
    Replayed replay;
    DEJA_ASSIGN_OR_RETURN(replay.reader, made.trace->Rank(rank, g_replay_options.attempt));
    DEJA_ASSIGN_OR_RETURN(const std::string own, made.scratch.ForRank(rank));
    DEJA_ASSIGN_OR_RETURN(
        replay.target, PrepareRank(*made.trace, rank, g_replay_options.attempt, own, made.options));
    AddVariables(made, made.replays.size(), replay.target);
    if (!made.options.child.empty()) {
      replay.child = made.options.child;
      DEJA_ASSIGN_OR_RETURN(replay.child_reader,
                            made.trace->Child(rank, made.options.child, g_replay_options.attempt));
    }
    made.replays.push_back(std::move(replay));
  }
  if (made.replays.empty())
    return Fail(ErrorCode::kNotFound,
                fmt::format("replaying: {}: it holds no rank", g_replay_options.trace));
  return {};
}

// The ranks run, and their verdicts are printed.
int RunAndJudge(const Context& context, Preparation& made) {
  for (const Replayed& replay : made.replays) {
    SayWhatIsKept(*replay.reader);
    for (const std::string& note : replay.target.notes) Diagnose(note);
  }
  ReplayOptions& options = made.options;
  std::unique_ptr<ChildOutputs> outputs;
  if (!options.child.empty()) {
    auto own = ChildOutputs::Make(made.replays[0].target.scratch, context.json);
    if (!own) return FailWith(own.error());
    outputs = std::move(*own);
    options.outputs = outputs->of_rank();
  }
  if (Status started = StartReplays(made.replays, options); !started)
    return FailWith(started.error());
  const Replayed& first = made.replays[0];
  if (options.wait)
    Diagnose(fmt::format("rank {}: process {} waits before main for a debugger; next: gdb -p {}",
                         first.target.rank, first.pid, first.pid));
  if (made.debugpy != 0)
    Diagnose(
        fmt::format("rank {}: it waits before its first line for an editor at localhost:{}; "
                    "next: in VS Code, Run and Debug, a configuration that --vscode writes",
                    first.target.rank, made.debugpy));
  WaitForReplays(made.replays, options, made.shared, [&made](uint32_t rank) {
    return LongestSilence(*made.trace, rank, g_replay_options.attempt);
  });
  outputs.reset();
  const bool left_trace = made.claim && FinishTrace(*made.claim, made.replays);
  if (Interruption::Signal() != 0) return Interrupted(context, *made.trace);
  if (g_replay_options.pdb && LeftPythonDebugger(first.status))
    return LeftDebugger(context, *made.trace);
  if (made.debugpy != 0 && LacksDebugpy(first.status)) return kExitFailure;
  const int code = ReportResults(*made.trace, made.replays,
                                 {context.json, g_replay_options.stacks, options.edited,
                                  !options.fold.empty(), g_replay_options.binaries});
  if (left_trace)
    Diagnose(fmt::format("next: deja diff {} {}", g_replay_options.trace, g_replay_options.out));
  return code;
}

// As the options say: in a debugger, as a process checkpoint, or to the end.
int RunPrepared(const Context& context, Preparation& made) {
  const Replayed& first = made.replays[0];
  if (g_replay_options.gdb) {
    const int code =
        DebugReplay(*made.trace, first, made.options,
                    made.ends.empty() ? "" : made.ends.front().gdb_command, made.start);
    return Interruption::EndOfSession() == 0 ? code : Interrupted(context, *made.trace);
  }
  if (g_replay_options.vscode) return PrepareVsCode(context, first.target);
  if (!g_replay_options.gdbserver.empty()) {
    const int code = ServeDebugger(first.target);
    return Interruption::EndOfSession() == 0 ? code : Interrupted(context, *made.trace);
  }
  if (!g_replay_options.process_checkpoint.empty()) {
    const int code = MakeProcessCheckpoint(first.target, made.options);
    return Interruption::Signal() == 0 ? code : Interrupted(context, *made.trace);
  }
  return RunAndJudge(context, made);
}

// Tools that the user has chosen come into the ranks.
Status PrepareTools(Preparation& made) {
  for (Replayed& replay : made.replays) {
    ReplayTarget& target = replay.target;
    if (g_replay_options.pdb)
      DEJA_RETURN_IF_ERROR(UsePythonDebugger(g_replay_options.breaks, target));
    if (g_replay_options.debugpy >= 0) {
      DEJA_ASSIGN_OR_RETURN(made.debugpy,
                            UseDebugpy(static_cast<uint16_t>(g_replay_options.debugpy), target));
    }
    if (g_replay_options.profile) DEJA_RETURN_IF_ERROR(UseProfile(target));
    if (g_replay_options.coverage) DEJA_RETURN_IF_ERROR(UseCoverage(target));
    if (g_replay_options.valgrind) DEJA_RETURN_IF_ERROR(UseValgrind(target));
  }
  return {};
}

int RunReplay(const Context& context) {
  ContinueGuarded();
  if (!g_replay_options.gdb_commands.empty()) g_replay_options.gdb = true;
  auto trace = OpenTrace(g_replay_options.trace);
  if (!trace) return FailWith(trace.error());
  const Interruption interruption;  // outlives the scratch folder
  Preparation made;
  made.trace = std::move(*trace);
  auto ranks = ChosenRanks(g_replay_options, *made.trace);
  if (!ranks) return Usage(ranks.error().message);
  made.ranks = std::move(*ranks);
  if (const std::string mistake = FindMistake(g_replay_options, made.ranks); !mistake.empty())
    return Usage(mistake);
  if (!g_replay_options.process_checkpoint.empty())
    if (Status able = PrepareProcessCheckpoint(); !able) return FailWith(able.error());
  auto claim = ClaimOut(g_replay_options.out);
  if (!claim) return FailWith(claim.error());
  if (*claim) made.claim.emplace(std::move(**claim));
  if (Status opened = made.scratch.Open(g_replay_options.scratch, g_replay_options.keep_scratch);
      !opened)
    return FailWith(opened.error());
  made.options = OptionsOf(context, made.ranks.size());
  for (const auto prepare : {PrepareBounds, PrepareDevices, PrepareRanks})
    if (Status prepared = prepare(made); !prepared) return FailWith(prepared.error());
  if (Status able = PrepareTools(made); !able) return Usage(able.error().message);
  const bool damaged = FindDamagedRecordings(*made.trace, made.replays);
  if (Status agreed = CheckConsent(g_replay_options.trace, *made.trace, made.replays,
                                   g_replay_options.attempt, g_replay_options.trust);
      !agreed)
    return Interruption::Signal() != 0 ? Interrupted(context, *made.trace)
                                       : Usage(agreed.error().message);
  if (Interruption::Signal() != 0) return Interrupted(context, *made.trace);
  const int code = RunPrepared(context, made);
  return damaged && code == kExitOk ? kExitDataLoss : code;
}

}  // namespace

extern const Command kReplayCommand;
const Command kReplayCommand = {
    "replay",
    "Run recorded ranks again, bit for bit, and compare",
    "  deja replay run.deja --rank 2          alone: its peers' data comes from the trace\n"
    "  deja replay run.deja --rank 2 --gdb    the same in gdb, with Deja's commands\n"
    "  deja replay run.deja --rank 2 --gdb --debugger-args=-tui    in gdb's full-screen view\n"
    "  deja replay run.deja --rank 2 --gdbserver localhost:1234    for a debugger from elsewhere\n"
    "  deja replay run.deja --rank 2 --pdb    a program of Python, in pdb at its exception\n"
    "  deja replay run.deja --rank 2 --pdb --break train.py:88    and at that line\n"
    "  deja replay run.deja --rank 2 --debugpy 5678    for an editor: VS Code's debugger of "
    "Python\n"
    "  deja replay run.deja --rank 2 --edited    an edited script: does the failure come again?\n"
    "  deja replay run.deja --rank 2 --edited --program ./train_fixed    the same of another "
    "build\n"
    "  deja replay run.deja --rank 2 --profile     a program of Python, with its profile\n"
    "  deja replay run.deja --rank 2 --valgrind    under Valgrind's memcheck\n"
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
