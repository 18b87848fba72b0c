// The processes of replayed ranks: started side by side, and waited for until they, and all that
// they have left, are gone.
//
// Main thread of a process that has no other children.
#ifndef DEJA_CLI_REPLAY_WATCH_REPLAY_PROCESSES_H_
#define DEJA_CLI_REPLAY_WATCH_REPLAY_PROCESSES_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/replay/start/replay_launch.h"
#include "cli/replay/watch/standstill.h"
#include "common/os/turn_area.h"
#include "common/result.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

struct Replayed {
  const format::RankReader* reader = nullptr;
  ReplayTarget target;
  pid_t pid = 0;
  int status = 0;
  bool ended = false;
  std::string shortage;      // device memory that there was not for it; empty: none was missing
  std::optional<Hang> hang;  // nothing: it was not ended
  std::string child;  // the replay is about this child, and ends with it; empty: the rank itself
  const format::RankReader* child_reader = nullptr;
  std::string damage;  // of the recordings that it is given; empty: none
  // No event before this time of theirs is lost.
  uint64_t lost_from_ns = UINT64_MAX;
};

// Kills all processes below this one, but for the child `but` and what is below that; 0: no
// exception. Returns when they are gone.
void EndDescendants(pid_t but);

// Starts them all, or none: those that were started are killed.
Status StartReplays(std::vector<Replayed>& replays, const ReplayOptions& options);

// Ranks that compute their collectives among themselves depend on each other. When one has stopped
// before its end and the others do not get on without it, they are ended. `shared`: where they note
// that they wait; ranks that share devices take turns on them if they have to.
struct SharedArea {
  TurnArea area;
  bool devices = false;
  size_t at_once = 0;  // ranks on a device; 0: as many as fit
};
// They are ended, too, when the user interrupts (cli/interruption.h), and nothing is proved then.
// A replay that hangs is ended, after a line that says so (cli/replay/watch/standstill.h).
void WaitForReplays(std::vector<Replayed>& replays, const ReplayOptions& options,
                    const std::optional<SharedArea>& shared,
                    const Standstill::RecordedSilence& recorded);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_REPLAY_PROCESSES_H_
