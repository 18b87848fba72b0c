// Starting a recorded rank's program again: what it was called with, checked against what is here.
//
// A ReplayTarget is prepared from a trace (all checks, nothing started) and then run, directly or
// in gdb. Main thread only. Errors say which rank, what was found and what to do. Nothing from a
// trace is used as a path to write to; the program that is started is the recorded one by its build
// id, unless the user says otherwise.
#ifndef DEJA_CLI_REPLAY_START_REPLAY_LAUNCH_H_
#define DEJA_CLI_REPLAY_START_REPLAY_LAUNCH_H_

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/fence/fence.h"
#include "cli/replay/start/fenced_start.h"
#include "common/result.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

struct ReplayOptions {
  std::vector<std::string> program;  // another path, or path and arguments; may be empty
  bool force = false;                // another build id is no error
  bool warn_on_divergence = false;
  bool edited = false;           // the program is not the recorded one, on purpose
  std::string clock = "served";  // or "day", "live"
  bool program_output_to_stderr = false;
  bool allow_writes = false;          // where the program writes, and not to the scratch folder
  bool allow_network = false;         // connections that are not served
  std::vector<std::string> pass_env;  // masked variables to take from this environment
  bool quiet_stdin = false;           // several ranks: none may read the terminal
  std::string fold;   // folder of the ranks that compute their collectives; or empty
  std::string child;  // of the rank: the one that the replay is about, as traces name it; or empty
  std::optional<std::array<int, 2>> outputs;  // in place of standard output and error
  bool wait = false;                          // before main, until a debugger has attached itself
  bool may_pause = false;   // a debugger may stop the program for as long as it likes
  bool own_group = false;   // a process group of its own: signals of the terminal are not for it
  FenceRules fence;         // but for the rank's scratch folder and what is allowed above
  bool is_foreign = false;  // the trace is not known to be the user's own: reading is fenced
};

struct ReplayTarget {
  uint32_t rank = 0;
  std::string executable;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", complete
  std::string working_directory;
  int umask = -1;          // as recorded; -1: as it is
  uint64_t inherited = 0;  // format::ProcessInfo's
  std::string scratch;
  std::string build_id;  // in words: whether it is the recorded program
  FenceRules fence;
  int listener = -1;                   // a socket of this process that the program gets, too
  std::vector<std::string> own_paths;  // that it may read, besides the system's, if that is fenced
  bool is_forked = false;              // the rank is a child of the process that is started
  std::vector<std::string> notes;      // for the user: what is not as recorded
};

// An error for a trace that `deja import` made: it has nothing to replay.
Status CheckRecorded(const format::TraceHeader& header);

// `folder`: of the rank; `scratch`: an existing empty folder.
Result<ReplayTarget> PrepareReplay(const format::RankReader& reader, const std::string& folder,
                                   const std::string& scratch, const ReplayOptions& options);

// Starts the program with fixed addresses. The new process's id.
Result<pid_t> StartReplay(const ReplayTarget& target, const ReplayOptions& options);

// What StartReplay starts, for those that start it otherwise.
FencedStart StartOf(const ReplayTarget& target);

// The path of a command, as a shell finds it; `name` itself if it does not.
std::string FindInPath(const std::string& name);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_REPLAY_LAUNCH_H_
