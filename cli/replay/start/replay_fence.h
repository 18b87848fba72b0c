// What the fence of a replay lets through, as the command line and the trace's origin have it.
//
// Main thread.
#ifndef DEJA_CLI_REPLAY_START_REPLAY_FENCE_H_
#define DEJA_CLI_REPLAY_START_REPLAY_FENCE_H_

#include <string>
#include <vector>

#include "cli/fence/fence_keeper.h"
#include "cli/replay/start/replay_launch.h"
#include "cli/replay/start/scratch_folder.h"
#include "common/result.h"

namespace deja::cli {

struct ReplayFence {
  std::string trace;      // as given
  std::string directory;  // where its folders are
  std::string out;        // the replay's own trace; empty: none
  std::vector<std::string> allow_read;
  std::vector<std::string> allow_file;  // to be written where it is
  // The filters ask no keeper: CRIU does not know filters that ask another process.
  bool unanswered = false;
};

// Fills in `options`, and starts `keeper`, which answers what the filters of the replays ask.
Status MakeFence(const ReplayFence& wanted, const ScratchFolder& scratch, FenceKeeper& keeper,
                 ReplayOptions& options);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_REPLAY_FENCE_H_
