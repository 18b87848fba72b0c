// A child of a replayed rank in gdb: the whole rank runs, and gdb is attached to the child when
// that begins.
//
// gdb's side (gdb/deja_gdb/child.py) asks for each run by a line in a FIFO of the scratch folder:
// the folder of the run. The answer is a line of JSON, the child's process number or why there is
// none. The rank of the run before is ended first.
//
// Main thread of a process that has no other children.
#ifndef DEJA_CLI_REPLAY_DEBUGGER_CHILD_DEBUGGING_H_
#define DEJA_CLI_REPLAY_DEBUGGER_CHILD_DEBUGGING_H_

#include <string>
#include <vector>

#include "cli/replay/debugger/gdb_launch.h"
#include "cli/replay/watch/replay_processes.h"
#include "common/result.h"

namespace deja::cli {

// `replay`: of a child, and not started. Returns gdb's exit code once gdb, and all that was
// started, has ended.
Result<int> DebugChild(const Replayed& replay, const ReplayOptions& options, const GdbOptions& gdb);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_DEBUGGER_CHILD_DEBUGGING_H_
