// What the command line has said to the library, in DEJA_* variables (common/env_vars.def).
//
// Any thread; they do not change.
#ifndef DEJA_REPLAYER_CORE_REPLAY_VARIABLES_H_
#define DEJA_REPLAYER_CORE_REPLAY_VARIABLES_H_

#include <string>

#include "common/env_vars.h"
#include "replayer/core/session_options.h"

namespace deja::replayer {

// Null: it is not set, or empty.
const char* Environment(const env::Text& variable);
std::string Text(const env::Text& variable);

// Goals of the rank itself: where it starts and ends, and what it leaves.
void SetGoals(SessionOptions& options);
// Modes of all its processes.
void SetModes(SessionOptions& options);

// The folder that holds `path`.
std::string FolderAround(const std::string& path);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_REPLAY_VARIABLES_H_
