// gdb, or a debugger that takes gdb's options, on a replayed rank's program; or gdbserver.
//
// The debugger starts the program by `deja run-fenced` (cli/replay/start/fenced_start.h), as often
// as the user wants. Nothing of a trace goes through the debugger or a shell. Main thread of a
// process that has no other children.
#ifndef DEJA_CLI_REPLAY_DEBUGGER_GDB_LAUNCH_H_
#define DEJA_CLI_REPLAY_DEBUGGER_GDB_LAUNCH_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/replay/start/replay_launch.h"
#include "common/result.h"

namespace deja::cli {

struct GdbOptions {
  std::string debugger = "gdb";        // its name in PATH, or its path
  std::vector<std::string> arguments;  // for it, before everything else
  std::string interpreter;             // mi, mi3, dap …; empty: the terminal's
  std::string first;                   // a command before all others; may be empty
  std::vector<std::string> commands;   // with some, the debugger runs them and ends
};

// Starts it with Deja's commands (gdb/deja_gdb) and the session.json of the scratch folder
// (gdb_session.h). The debugger's process id.
Result<pid_t> StartGdb(const ReplayTarget& target, const GdbOptions& options);

// Waits for it; ends it when the terminal is gone or this process is to end.
void AwaitGdb(pid_t gdb, int& status);

// Its exit code, from its status as waitpid gives it. kNotFound: it could not be started.
Result<int> ExitOfGdb(int status, const std::string& debugger);

// All of this: returns its exit code, when nothing of its program is left.
Result<int> RunGdb(const ReplayTarget& target, const GdbOptions& options);

// Runs gdbserver with the program, stopped before its first instruction, at `address` (HOST:PORT),
// until the debugger that comes there is done. gdbserver's exit code.
Result<int> RunGdbServer(const ReplayTarget& target, const std::string& address);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_DEBUGGER_GDB_LAUNCH_H_
