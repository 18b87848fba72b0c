// What gdb's side of a replay (gdb/deja_gdb/) is told: how to start the program anew, and from
// where.
//
// A file session.json in the scratch folder. Main thread only.
#ifndef DEJA_CLI_GDB_SESSION_H_
#define DEJA_CLI_GDB_SESSION_H_

#include <string>
#include <vector>

#include "cli/replay_launch.h"
#include "common/result.h"
#include "format/trace.h"

namespace deja::cli {

// `attempt`: of each rank; -1: the last.
Status WriteGdbSession(format::Trace& trace, int attempt, const ReplayTarget& target);

}  // namespace deja::cli

#endif  // DEJA_CLI_GDB_SESSION_H_
