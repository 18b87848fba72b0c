// The processes of replayed ranks: started side by side, and waited for until they, and all that
// they have left behind, are gone.
//
// Main thread of a process that has no other children.
#ifndef DEJA_CLI_REPLAY_PROCESSES_H_
#define DEJA_CLI_REPLAY_PROCESSES_H_

#include <sys/types.h>

#include <vector>

#include "cli/replay_launch.h"
#include "common/result.h"
#include "format/rank_reader.h"

namespace deja::cli {

struct Replayed {
  const format::RankReader* reader = nullptr;
  ReplayTarget target;
  pid_t pid = 0;
  int status = 0;
  bool ended = false;  // of ranks that are waited for together
};

// Starts them all, or none: those that were started are killed.
Status StartReplays(std::vector<Replayed>& replays, const ReplayOptions& options);

// `together`: they compute their collectives among themselves, so the others are ended when one has
// stopped before its end and they do not get on without it.
void WaitForReplays(std::vector<Replayed>& replays, bool together);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_PROCESSES_H_
