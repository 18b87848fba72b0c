// Python's debugger in a replay: pdb, or ipdb where that is installed
// (python/deja/interpreter/debugger.py).
//
// The rank's own interpreter has it. It stops at the exception that ends the program, and at the
// lines that the user names. Pure, but for files that are looked at; any thread.
#ifndef DEJA_CLI_REPLAY_DEBUGGER_PYTHON_DEBUGGING_H_
#define DEJA_CLI_REPLAY_DEBUGGER_PYTHON_DEBUGGING_H_

#include <string>
#include <vector>

#include "cli/replay/start/replay_launch.h"
#include "common/result.h"

namespace deja::cli {

// Gives the debugger to the program of `target`, with breakpoints at `lines` (FILE:LINE).
// kInvalidArgument:
// - the program is no interpreter of Python
// - the rank is a forked child of the program
// - a line is not of that form
Status UsePythonDebugger(const std::vector<std::string>& lines, ReplayTarget& target);

// Whether the program at `executable` is an interpreter of Python, by its name.
bool IsPython(const std::string& executable);

// Adds a name to the program's PYTHONPATH, by which python/sitecustomize.py knows what `option` of
// the command wants. Returns kInvalidArgument if the program is no interpreter of Python, or the
// rank is a forked child of it.
Status MarkForPython(const std::string& option, const std::string& mark, ReplayTarget& target);

// Whether the user has ended the replay in the debugger. `status`: as waitpid gives it.
bool LeftPythonDebugger(int status);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_DEBUGGER_PYTHON_DEBUGGING_H_
