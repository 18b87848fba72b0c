// debugpy in a replay: an editor debugs a rank's program of Python over a connection
// (python/deja/interpreter/editor.py).
//
// The socket is made here and handed down: the fence lets a rank make none. Pure but for the
// socket; any thread.
#ifndef DEJA_CLI_REPLAY_DEBUGGER_DEBUGPY_H_
#define DEJA_CLI_REPLAY_DEBUGGER_DEBUGPY_H_

#include <cstdint>

#include "cli/replay/start/replay_launch.h"
#include "common/result.h"

namespace deja::cli {

// Where an editor's configuration expects a rank, if the user says nothing else.
inline constexpr uint16_t kDebugpyPort = 5678;

// Lets the program of `target` wait, before its first line, for an editor at `port` of this
// machine; 0: a free one. Returns the port.
// kInvalidArgument: as MarkForPython. Other errors: the port cannot be had.
Result<uint16_t> UseDebugpy(uint16_t port, ReplayTarget& target);

// Whether the replay has ended before the program, because its Python has no debugpy. `status`: as
// waitpid gives it.
bool LacksDebugpy(int status);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_DEBUGGER_DEBUGPY_H_
