// Standstill: whether a replay can still move, seen from outside of its processes.
//
// A process can be left in a wait that nothing ends: a read of a pipe to which only one other
// process could write. That process is another program, or a child that ended before its recording
// does. No call reaches the engine then, so the process that started the replay looks.
//
// Waits can also have limits of the program's own, or begin again and again. Nothing that was
// recorded happens then. Such a replay is silent, as the recorded run may have been for a time.
//
// Used on the main thread of the process that has started the replays. It is a subreaper: what they
// leave becomes its child, and belongs to all of them.
#ifndef DEJA_CLI_REPLAY_WATCH_STANDSTILL_H_
#define DEJA_CLI_REPLAY_WATCH_STANDSTILL_H_

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
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

// Why a replay was ended that hung.
struct Hang {
  std::string reason;              // in a clause after "the replay hung and was ended: "
  std::vector<std::string> waits;  // Standstill::Describe
};

class Standstill {
 public:
  enum class State {
    kMoves,
    kSilent,  // its threads wait, also for times, and nothing that was recorded happens; for the
              // longest silence of the recording and as long as patience lasts. Not where a GPU
              // may compute.
    kIdles,  // only threads move that look for something from time to time; for as long as patience
             // lasts
    kStands,  // no thread can move any more; as long
  };
  struct Pace {
    std::chrono::milliseconds look{2000};       // from one look to the next
    std::chrono::milliseconds patience{10000};  // how long nothing moves before it is said
    std::chrono::milliseconds end{60000};       // how long it is silent before it counts as hung
  };
  // The longest silence of a rank's recording.
  using RecordedSilence = std::function<std::chrono::milliseconds(uint32_t rank)>;

  // `replays`: they wait for each other, or it is one. `others`: children of this process that have
  // nothing to do with them.
  Standstill(std::vector<WatchedReplay> replays, std::set<pid_t> others, OutsideFiles outside,
             Pace pace, RecordedSilence recorded)
      : replays_(std::move(replays)),
        others_(std::move(others)),
        outside_(std::move(outside)),
        pace_(pace),
        recorded_(std::move(recorded)) {
    reached_.fill(Clock::now());
  }

  // Looks at the processes, if it is time to. `recorded` is asked once, where they may be silent.
  State Look();
  // How long nothing moves before it is said to be in this state, which a look has found.
  [[nodiscard]] std::chrono::milliseconds Patience(State state) const;
  // As the last look found: the replay cannot go on, or is not to be waited for.
  [[nodiscard]] bool IsHung() const;
  [[nodiscard]] Hang DescribeHang() const;

  // What the processes wait for, a line each, as the last look found them.
  [[nodiscard]] std::vector<std::string> Describe() const;
  // Kills them.
  void End() const;

 private:
  using Clock = std::chrono::steady_clock;

  // The state that one look shows: what all threads do at best.
  [[nodiscard]] State Judge(const ProcessWaits& now) const;
  [[nodiscard]] std::string Reason() const;
  [[nodiscard]] uint64_t ServedSoFar() const;
  [[nodiscard]] std::chrono::milliseconds LongestSilence();
  // For how long all looks have shown this state, or one in which less moves.
  [[nodiscard]] std::chrono::milliseconds TimeIn(State state) const;
  [[nodiscard]] std::string NameOf(pid_t pid) const;

  const std::vector<WatchedReplay> replays_;
  const std::set<pid_t> others_;
  const OutsideFiles outside_;
  const Pace pace_;
  const RecordedSilence recorded_;
  ProcessWaits last_;
  std::optional<std::chrono::milliseconds> silence_;  // once it was asked for
  uint64_t served_ = 0;
  Clock::time_point looked_ = Clock::now();
  std::array<Clock::time_point, 4> reached_{};  // by state: since when
  State state_ = State::kMoves;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_STANDSTILL_H_
