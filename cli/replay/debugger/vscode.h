// A launch configuration by which VS Code debugs a replayed rank: .vscode/launch.json of the
// working directory. It is for the C++ extension's debugger (cppdbg), which drives gdb by its
// machine interface. A program of Python has one for debugpy, too.
//
// The configuration of cppdbg names a small script beside it, which starts this same replay in gdb.
// That of debugpy attaches to a replay that the user has started with --debugpy. Pure but for these
// two files; any thread.
#ifndef DEJA_CLI_REPLAY_DEBUGGER_VSCODE_H_
#define DEJA_CLI_REPLAY_DEBUGGER_VSCODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace deja::cli {

struct VsCodeReplay {
  std::string trace;  // as the user names it
  uint32_t rank = 0;
  std::string program;               // path of the rank's executable
  std::vector<std::string> command;  // of this `deja replay`, complete, with --vscode
};

struct VsCodeFiles {
  std::string launch;  // path of launch.json
  std::string script;
  std::string name;          // of the configuration
  std::string python_name;   // of debugpy's; empty: the program is not Python
  std::string python_first;  // the command that has to run before it
};

// Writes both below `folder`. Other configurations of a launch.json that is there stay.
// kInvalidArgument: it has comments or is damaged, so that it cannot be written again; the message
// has the configuration.
Result<VsCodeFiles> WriteVsCode(const VsCodeReplay& replay, const std::string& folder);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_DEBUGGER_VSCODE_H_
