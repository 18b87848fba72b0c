// Standstill: whether a replay can still move, seen from outside of its processes.
//
// A process can be left in a wait that nothing ends: a read of a pipe to which only one other
// process could write. That process is another program, or a child that ended before its recording
// does. No call reaches the engine then, so the process that started the replay looks.
//
// Used on the main thread of the process that has started the replays. It is a subreaper: what they
// leave becomes its child, and belongs to all of them.
#ifndef DEJA_CLI_REPLAY_WATCH_STANDSTILL_H_
#define DEJA_CLI_REPLAY_WATCH_STANDSTILL_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/replay/watch/process_waits.h"

namespace deja::cli {

struct WatchedReplay {
  uint32_t rank = 0;
  pid_t root = 0;
  std::string scratch;  // folder whose report names the processes
};

class Standstill {
 public:
  enum class State {
    kMoves,
    kIdles,  // only threads move that look for something from time to time; for as long as patience
             // lasts
    kStands,  // no thread can move any more; as long
  };
  struct Pace {
    std::chrono::milliseconds look{2000};       // from one look to the next
    std::chrono::milliseconds patience{10000};  // how long nothing moves before it is said
  };

  // `replays`: they wait for each other, or it is one. `others`: children of this process that have
  // nothing to do with them.
  Standstill(std::vector<WatchedReplay> replays, std::set<pid_t> others, OutsideFiles outside,
             Pace pace)
      : replays_(std::move(replays)),
        others_(std::move(others)),
        outside_(std::move(outside)),
        pace_(pace) {}

  // Looks at the processes, if it is time to.
  State Look();

  // What the processes wait for, a line each, as the last look found them.
  [[nodiscard]] std::vector<std::string> Describe() const;
  // Kills them.
  void End() const;

 private:
  using Clock = std::chrono::steady_clock;

  // The state that one look shows: what all threads do at best.
  [[nodiscard]] State Judge(const ProcessWaits& now) const;
  [[nodiscard]] std::string NameOf(pid_t pid) const;

  const std::vector<WatchedReplay> replays_;
  const std::set<pid_t> others_;
  const OutsideFiles outside_;
  const Pace pace_;
  ProcessWaits last_;
  Clock::time_point looked_ = Clock::now();
  Clock::time_point moved_ = looked_;  // last time when something did more than idle
  Clock::time_point idled_ = looked_;  // or idled
  State state_ = State::kMoves;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_STANDSTILL_H_
