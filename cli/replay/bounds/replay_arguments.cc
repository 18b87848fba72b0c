#include "cli/replay/bounds/replay_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "cli/help/option_list.h"
#include "cli/number_range.h"

namespace deja::cli {
namespace {

// "A-B" or "A".
// What speaks against --process-checkpoint, before anything is started; empty: nothing.
std::string ProcessCheckpointMistake(const ReplayArguments& arguments,
                                     const std::vector<uint32_t>& ranks) {
  const std::string option = "--process-checkpoint: ";
  if (ranks.size() > 1) return option + "it is of one process; choose it with --rank R";
  if (!arguments.until.any()) return option + "no place is given; give --until-step or --until-seq";
  if (arguments.gdb) return option + "criu refuses traced processes; leave out --gdb";
  if (!arguments.out.empty()) return option + "it does not go with --out; leave out one of them";
  if (!arguments.child.empty())
    return option + "it does not go with --child; leave out one of them";
  return {};
}

// A tool is one, and has the rank for itself; empty: nothing speaks against it.
std::string ToolMistake(const ReplayArguments& arguments, const std::vector<uint32_t>& ranks) {
  std::vector<std::string> chosen;
  if (arguments.profile) chosen.emplace_back("--profile");
  if (arguments.coverage) chosen.emplace_back("--coverage");
  if (arguments.valgrind) chosen.emplace_back("--valgrind");
  if (chosen.empty()) return {};
  if (chosen.size() > 1) return fmt::format("{} needs a replay without {}", chosen[1], chosen[0]);
  if (ranks.size() > 1) return chosen[0] + " needs --rank: it measures one program";
  if (arguments.gdb || arguments.pdb || arguments.debugpy >= 0 || arguments.wait ||
      arguments.vscode || !arguments.gdbserver.empty() || !arguments.process_checkpoint.empty())
    return chosen[0] + " needs a replay without a debugger or a process checkpoint";
  return {};
}

// The ways to debug are one or the other, and each shows one rank; empty: nothing speaks against
// it.
std::string DebuggerMistake(const ReplayArguments& arguments, const std::vector<uint32_t>& ranks) {
  std::vector<std::string> chosen;
  if (arguments.gdb) chosen.emplace_back("--gdb");
  if (arguments.pdb) chosen.emplace_back("--pdb");
  if (arguments.debugpy >= 0) chosen.emplace_back("--debugpy");
  if (!arguments.gdbserver.empty()) chosen.emplace_back("--gdbserver");
  if (arguments.wait) chosen.emplace_back("--wait");
  if (arguments.vscode) chosen.emplace_back("--vscode");
  if (chosen.size() > 1)
    return fmt::format("{}: it does not go with {}; leave out one of them", chosen[1], chosen[0]);
  if (!chosen.empty() && ranks.size() > 1)
    return chosen[0] + ": it shows one program; choose it with --rank R";
  if (!chosen.empty() && !arguments.gdb && !arguments.child.empty())
    return chosen[0] + ": it cannot show a child; use --gdb";
  const bool for_gdb = arguments.debugger != "gdb" || !arguments.debugger_args.empty() ||
                       !arguments.interpreter.empty();
  if (for_gdb && !arguments.gdb)
    return "--debugger, --debugger-args, --interpreter: they are for gdb; give --gdb";
  return {};
}

}  // namespace

void AddReplayArguments(CLI::App& app, ReplayArguments& arguments) {
  AddTraceArgument(app, "TRACE", arguments.trace);
  auto* rank = app.add_option("--rank", arguments.rank,
                              "The rank to replay, alone; not needed if there is only one")
                   ->check(CLI::NonNegativeNumber);
  auto* ranks = app.add_option("--ranks", arguments.ranks, "Ranks to replay side by side: A-B");
  auto* all = app.add_flag("--all", arguments.all, "Replay all recorded ranks side by side");
  rank->excludes(ranks)->excludes(all);
  ranks->excludes(all);
  auto* compute = app.add_flag(
      "--compute", arguments.compute,
      "Let the ranks compute their collectives among themselves, in the order of NCCL's "
      "ring, even if the trace has the results; they are compared with it");
  auto* devices =
      app.add_option(
             "--devices", arguments.devices,
             "Use N CUDA devices, in turn, for all that the recorded job had; the program "
             "sees one for each rank of its machine. Ranks whose memory does not fit on a device "
             "together take turns, if the driver (570 and later) can swap processes out")
          ->check(CLI::PositiveNumber);
  app.add_option("--turns", arguments.turns,
                 "With --devices: at most N ranks on a device as soon as others wait for them, "
                 "instead of as many as fit")
      ->check(CLI::PositiveNumber)
      ->needs(devices);
  app.add_option("--attempt", arguments.attempt,
                 "Which run of a restarted rank; the last one if not given");
  auto* from = app.add_option("--from-step", arguments.from_step,
                              "Start at the latest checkpoint at or before this step (deja record "
                              "--checkpoint-every) that all ranks have")
                   ->check(CLI::NonNegativeNumber);
  auto* step = app.add_option("--until-step", arguments.until.step,
                              "End where this step begins (with --gdb: stop there); unless "
                              "--from-step is given, start at the latest checkpoint before it");
  auto* seq = app.add_option("--until-seq", arguments.until.seq,
                             "The same for the operation with this number, before it is served")
                  ->check(CLI::PositiveNumber);
  step->excludes(seq);
  app.add_option("--comm", arguments.until.comm,
                 "Communicator of --until-seq; the one that reaches that number first if not given")
      ->needs(seq);
  auto* child =
      app.add_option("--child", arguments.child,
                     "A process that the rank has made, as deja info names it (0/3): it alone is "
                     "shown and judged, in gdb it alone is stopped; the whole rank runs for it, "
                     "until it has ended");
  for (auto* other : {ranks, all, compute, devices, from, step, seq}) child->excludes(other);
  auto* on_divergence =
      app.add_option("--on-divergence", arguments.on_divergence,
                     "stop: end at the first difference; warn: report it and go on")
          ->check(CLI::IsMember({"stop", "warn"}))
          ->capture_default_str();
  app.add_flag("--edited", arguments.edited,
               "The program is changed on purpose (an edited script, or another build, given by "
               "--program): go on with what was recorded, say where the change takes effect first, "
               "and whether the recorded failure comes again")
      ->excludes(on_divergence)
      ->excludes(child);
  app.add_flag("--stacks", arguments.stacks,
               "Where a program of Python diverges, show the native frames, too");
  app.add_option("--clock", arguments.clock,
                 "served: all clocks read as recorded; day: only the time of day; live: none")
      ->check(CLI::IsMember({"served", "day", "live"}))
      ->capture_default_str();
  app.add_flag("--gdb", arguments.gdb, "Replay in gdb, with Deja's commands (deja help)");
  app.add_option("--gdb-command", arguments.gdb_commands,
                 "With --gdb: run this command, and end after the last one (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--debugger", arguments.debugger,
                 "With --gdb: another debugger with gdb's options, as gdb-multiarch or cuda-gdb")
      ->capture_default_str();
  app.add_option("--debugger-args", arguments.debugger_args,
                 "With --gdb: options for the debugger, in one word, as '-tui -nx'");
  app.add_option("--interpreter", arguments.interpreter,
                 "With --gdb: gdb's interface for programs, as mi3");
  app.add_option("--gdbserver", arguments.gdbserver,
                 "Let a debugger from elsewhere come: HOST:PORT, where gdbserver waits with the "
                 "rank before its first instruction");
  app.add_flag("--wait", arguments.wait,
               "Print the rank's process number, and let it wait before main until a debugger has "
               "attached itself: gdb -p NUMBER");
  app.add_flag("--vscode", arguments.vscode,
               "Write a launch configuration for VS Code into .vscode/launch.json, instead of a "
               "replay");
  auto* pdb = app.add_flag("--pdb", arguments.pdb,
                           "Stop in Python's debugger (ipdb where it is installed) at the "
                           "exception that ended the rank");
  app.add_option("--break", arguments.breaks,
                 "With --pdb: stop at this line, too, as train.py:88 (repeatable)")
      ->needs(pdb)
      ->allow_extra_args(false);
  app.add_option("--debugpy", arguments.debugpy,
                 "Let an editor that speaks to debugpy, as VS Code, debug a program of Python: the "
                 "rank waits at this port of localhost before its first line; 0: a free port")
      ->type_name("PORT")
      ->check(CLI::Range(0, 65535));
  app.add_flag("--profile", arguments.profile,
               "Profile a program of Python (cProfile, the main thread); monotonic clocks are "
               "live, as with --clock day");
  app.add_flag("--coverage", arguments.coverage,
               "Show the lines of a program of Python that ran (module coverage)");
  app.add_flag("--valgrind", arguments.valgrind,
               "Run the program under Valgrind's memcheck; reports are on standard error");
  app.add_option("--process-checkpoint", arguments.process_checkpoint,
                 "Write an image of the whole process at the place of --until-step or --until-seq "
                 "into this new folder, by CRIU; says why if this machine cannot");
  app.add_option("-o,--out", arguments.out,
                 "Leave a trace of what the replayed program does there, to be compared with the "
                 "recording: deja diff TRACE OUT, deja bisect TRACE OUT");
  app.add_option("--scratch", arguments.scratch,
                 "Empty folder for what the program writes; a temporary one if not given");
  app.add_flag("--keep-scratch", arguments.keep_scratch, "Do not remove that folder at the end");
  app.add_flag("--allow-writes", arguments.allow_writes,
               "Let the program change files where they are, instead of copies in the scratch "
               "folder: it may overwrite what the recorded job left, checkpoints too");
  app.add_flag("--allow-network", arguments.allow_network,
               "Let the program make connections that the trace does not serve");
  app.add_option("--pass-env", arguments.pass_env,
                 "Give the program this environment's value of a variable that is masked in the "
                 "trace, e.g. --pass-env HF_TOKEN (repeatable)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--trust", arguments.trust,
               "Run what a trace names that was not recorded or packed here by you; remembered for "
               "this trace");
  app.add_option("--allow-read", arguments.allow_read,
                 "Let the program of such a trace read this file or folder, too (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--allow-file", arguments.allow_file,
                 "Let what reaches files past the C library (a GPU's driver) write this file or "
                 "folder where it is (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--program", arguments.program,
                 "Where the recorded program is here, as after `--`")
      ->allow_extra_args(false);
  app.add_flag("--force", arguments.force, "Replay a program with another build id");
  AddBinariesOption(app, arguments.binaries);
  SetPaths(app, {"--process-checkpoint", "--out", "--scratch", "--allow-read", "--allow-file",
                 "--program"});
  SetGroups(
      app, {{"Which processes", {"--rank", "--ranks", "--all", "--attempt", "--child"}},
            {"From where to where", {"--from-step", "--until-step", "--until-seq", "--comm"}},
            {"Ranks together", {"--compute", "--devices", "--turns"}},
            {"What is compared", {"--on-divergence", "--edited", "--out", "--stacks", "--clock"}},
            {"In a debugger",
             {"--gdb", "--gdb-command", "--debugger", "--debugger-args", "--interpreter", "--pdb",
              "--break", "--debugpy", "--gdbserver", "--wait", "--vscode", "--process-checkpoint"}},
            {"Under a tool", {"--profile", "--coverage", "--valgrind"}},
            {"The program", {"--program", "--force", "--binaries", "--pass-env"}},
            {"What it may do",
             {"--trust", "--scratch", "--keep-scratch", "--allow-writes", "--allow-network",
              "--allow-read", "--allow-file"}}});
}

Result<std::vector<uint32_t>> ChosenRanks(const ReplayArguments& arguments,
                                          const format::Trace& trace) {
  std::set<uint32_t> there;
  for (const format::RankFolder& folder : trace.ranks()) there.insert(folder.rank);
  if (arguments.all) return std::vector<uint32_t>(there.begin(), there.end());
  if (arguments.rank >= 0) return std::vector<uint32_t>{static_cast<uint32_t>(arguments.rank)};
  if (arguments.ranks.empty() && there.size() <= 1)
    return std::vector<uint32_t>(there.begin(), there.end());
  if (arguments.ranks.empty())
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("replaying: {}: it has {} ranks; choose with --rank R, --ranks A-B or --all",
                    trace.path(), there.size()));
  DEJA_ASSIGN_OR_RETURN(NumberRange range, ParseRange("--ranks", arguments.ranks));
  if (range.to == UINT64_MAX && !there.empty())  // "2-": to the last one
    range.to = std::max<uint64_t>(range.from, *there.rbegin());
  if (range.to > UINT32_MAX)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--ranks {}: no rank has such a number; give a range such as 0-3",
                            arguments.ranks));
  std::vector<uint32_t> chosen;
  for (uint64_t rank = range.from; rank <= range.to; ++rank) {
    chosen.push_back(static_cast<uint32_t>(rank));
    // Trace::Rank words the error for one that is not there.
    if (there.count(static_cast<uint32_t>(rank)) == 0) break;
  }
  return chosen;
}

std::string FindMistake(const ReplayArguments& arguments, const std::vector<uint32_t>& ranks) {
  const bool has_out = !arguments.out.empty();
  if (arguments.gdb && has_out)
    return "--out: in gdb a program goes back and forth, and a trace would hold both as if they "
           "had happened; leave out --gdb";
  if (std::string mistake = DebuggerMistake(arguments, ranks); !mistake.empty()) return mistake;
  if (std::string mistake = ToolMistake(arguments, ranks); !mistake.empty()) return mistake;
  const bool has_child = !arguments.child.empty();
  if (has_child && ranks.size() != 1)
    return "--child: it belongs to one rank; choose it with --rank R";
  if (has_child && has_out)
    return "--out: it holds calls of ranks, not of a child; leave out --child";
  if (!arguments.process_checkpoint.empty()) return ProcessCheckpointMistake(arguments, ranks);
  return {};
}

}  // namespace deja::cli
