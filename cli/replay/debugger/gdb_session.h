// The information for gdb's side of a replay (gdb/deja_gdb/): how to start the program again, and
// from where.
//
// A file session.json in the scratch folder. Main thread only.
#ifndef DEJA_CLI_REPLAY_DEBUGGER_GDB_SESSION_H_
#define DEJA_CLI_REPLAY_DEBUGGER_GDB_SESSION_H_

#include <string>
#include <vector>

#include "cli/replay/bounds/checkpoint_choice.h"
#include "cli/replay/start/replay_launch.h"
#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

// `attempt`: of each rank; -1: the last. `damaged`: checkpoints that the user knows to be of no
// use. Whether the others are sound gdb's side asks of `deja verify` before it starts at one: that
// reads all of its bytes. `child`: of the rank, the one that gdb shows, which has no checkpoints;
// empty: the rank itself.
Status WriteGdbSession(format::Trace& trace, int attempt, const ReplayTarget& target,
                       const std::vector<DamagedCheckpoint>& damaged, const std::string& child);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_DEBUGGER_GDB_SESSION_H_
