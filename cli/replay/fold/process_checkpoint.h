// A whole replayed process as an image on disk: by CRIU, and cuda-checkpoint where it uses a GPU.
//
// Main thread only. Errors say what is missing, or what the tool said.
#ifndef DEJA_CLI_REPLAY_FOLD_PROCESS_CHECKPOINT_H_
#define DEJA_CLI_REPLAY_FOLD_PROCESS_CHECKPOINT_H_

#include <sys/types.h>

#include <string>

#include "common/result.h"

namespace deja::cli {

// An error if this machine and this user cannot.
Status CheckProcessCheckpoints();

// Waits until the replay, process `pid` with this scratch folder, is held (DEJA_HOLD); the text of
// the place. An error if it ends before. Reaps it then.
Result<std::string> WaitUntilHeld(pid_t pid, const std::string& scratch);

// Writes the image of the process into `folder`, which must be there. The process is gone
// afterwards, and reaped, whatever came of it.
Status DumpProcess(pid_t pid, const std::string& folder);

// The commands that bring it back.
std::string RestoreText(pid_t pid, const std::string& folder, const std::string& scratch);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_FOLD_PROCESS_CHECKPOINT_H_
