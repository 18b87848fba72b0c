// Spawning a shell as system and popen do, named like every other process of the program.
//
// Any thread.
#ifndef DEJA_PRELOAD_HOOKS_PROCESS_SPAWN_H_
#define DEJA_PRELOAD_HOOKS_PROCESS_SPAWN_H_

#include <spawn.h>

#include "preload/engine/engine.h"

namespace deja::preload {

// The engine, if this call is the program's and processes have names; asking makes no engine where
// Deja is off.
Engine* EngineForChildren();

// As posix_spawn of /bin/sh.
int SpawnShell(pid_t* pid, const posix_spawn_file_actions_t* actions,
               const posix_spawnattr_t* attributes, char* const* argv);

// From now on a forked child gets its engine before fork returns there, not with its first hooked
// call.
void EnterForkedChildrenAtOnce();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PROCESS_SPAWN_H_
