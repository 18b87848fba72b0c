// Tools under which a rank replays: what would be too slow in production, and changes nothing in a
// replay.
//
// They show their result on standard error when the program ends. Pure, but for files that are
// looked at; any thread. Errors are kInvalidArgument: the tool does not fit the program; or
// kNotFound: it is not installed.
#ifndef DEJA_CLI_REPLAY_DEBUGGER_TOOLS_H_
#define DEJA_CLI_REPLAY_DEBUGGER_TOOLS_H_

#include "cli/replay/start/replay_launch.h"
#include "common/result.h"

namespace deja::cli {

// Python's own profiler, and the lines that run by `coverage`
// (python/deja/interpreter/measured.py).
Status UseProfile(ReplayTarget& target);
Status UseCoverage(ReplayTarget& target);

// Valgrind's memcheck runs the program. It is started without Valgrind's launcher, which would
// take the rank's place.
Status UseValgrind(ReplayTarget& target);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_DEBUGGER_TOOLS_H_
