// TurnScheduler: whose turn it is on devices whose memory the replayed ranks do not fit into
// together.
//
// Nothing happens while they fit. When an allocation of a rank fails, a rank that waits for others
// (replayer/turns/turns.h) is swapped out, and the allocation is tried again. From then on a device
// has at most the number of ranks that have fit. A rank that was swapped out comes back when what
// it waited for is there: as soon as one that is on the device waits. Ranks come back in the order
// in which they began to want it, so each gets its turn.
//
// Ranks that are served from their recordings do not wait for each other. If the allocation of one
// has failed, it waits for others to end. If that is so for all of a device's ranks, they are
// swapped out for each other.
//
// Swapping out is safe at any point of a rank: its calls of CUDA wait until it is back. So nothing
// here depends on what a rank says about itself, but progress. If all ranks of a device seem to
// wait for a time, those that are out come back one after the other. Their threads that do not wait
// may have to go on.
//
// Main thread only. Step never waits but for the driver.
#ifndef DEJA_CLI_REPLAY_FOLD_TURN_SCHEDULER_H_
#define DEJA_CLI_REPLAY_FOLD_TURN_SCHEDULER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/devices/device_swap.h"
#include "common/os/turn_area.h"

namespace deja::cli {

class TurnScheduler {
 public:
  using Clock = std::chrono::steady_clock;
  using OpenSwap = std::function<Result<std::unique_ptr<DeviceSwap>>()>;
  using Say = std::function<void(const std::string&)>;
  struct Rules {
    size_t at_once = 0;  // the most ranks on a device, as soon as more wait; 0: as many as fit
    // Ranks that cannot be swapped out may free memory as long as something moves.
    std::chrono::milliseconds refuse{5000};
    // All seem to wait: the first time, and the longest.
    std::chrono::milliseconds rotate{1000};
    std::chrono::milliseconds rotate_most{60000};
  };

  // `ranks`: the numbers of those that have the area's cells. `open_swap`: called once, when a rank
  // is to be swapped out.
  TurnScheduler(const TurnArea& area, std::vector<uint32_t> ranks, OpenSwap open_swap, Say say,
                const Rules& rules);

  // Does what there is to do now. False: nothing.
  bool Step(Clock::time_point now = Clock::now());
  // The process of the rank at `index` is gone; its cell says so.
  void Ended(size_t index);

  // Ranks whose driver gave up half way, by index: they cannot go on.
  [[nodiscard]] std::vector<size_t> TakeLost();
  // How often a rank was swapped out.
  [[nodiscard]] uint64_t swaps() const { return swaps_; }
  // Why ranks could not be swapped out when they were to be; empty: they could.
  [[nodiscard]] const std::string& no_swap() const { return no_swap_; }
  // What there was no memory for, of the rank at `index`; empty: nothing.
  [[nodiscard]] const std::string& shortage(size_t index) const { return known_[index].shortage; }

 private:
  struct Known {
    bool ended = false;
    bool stays = false;        // the driver has refused to swap it out
    uint64_t tried_at = 0;     // change_ when its allocation was tried again last; 0: not yet
    uint64_t wants_since = 0;  // order_; 0: it wants nothing
    uint64_t rests_since = 0;  // order_; 0: it does not rest
    uint64_t rests_seen = 0;
    std::string shortage;
  };

  [[nodiscard]] TurnCell& Cell(size_t index) const {
    return area_.cell(static_cast<uint32_t>(index));
  }
  [[nodiscard]] bool IsThere(size_t index) const;
  [[nodiscard]] bool IsIn(size_t index) const;
  [[nodiscard]] bool Asks(size_t index) const;
  [[nodiscard]] bool Rests(size_t index) const;
  [[nodiscard]] bool Share(size_t index, size_t other) const;
  // The number of a device's ranks that are on it.
  [[nodiscard]] size_t CountIn(uint64_t device_bit) const;
  [[nodiscard]] size_t MostOn(uint64_t device_bit) const;
  [[nodiscard]] bool HasRoomFor(size_t index) const;

  void Look(Clock::time_point now);
  bool AnswerAsks(Clock::time_point now);
  bool AnswerAsk(size_t index, Clock::time_point now);
  bool BringIn();
  bool ThinOut();
  bool Rotate(Clock::time_point now);
  void Moved();
  // One of the ranks that share a device with `index`. `also_asking`: or one whose allocation has
  // failed.
  [[nodiscard]] int FindVictim(size_t index, bool also_asking) const;
  void MakeWay(size_t victim, size_t for_whom);
  bool TakeOut(size_t victim);
  bool BringBack(size_t index);
  void Answer(size_t index, MemoryAnswer answer);
  void Refuse(size_t index);
  [[nodiscard]] std::string DescribeShortage(size_t index) const;
  bool HasSwap();
  void Lose(size_t index, const std::string& why);

  TurnArea area_;
  std::vector<uint32_t> ranks_;
  OpenSwap open_swap_;
  Say say_;
  Rules rules_;
  std::unique_ptr<DeviceSwap> swap_;
  bool swap_opened_ = false;
  std::string no_swap_;  // why a rank could not be swapped out, or none can
  std::vector<Known> known_;
  std::vector<size_t> lost_;
  std::map<uint64_t, size_t> most_;  // by a device's bit: the number of ranks that fit
  uint64_t order_ = 0;
  uint64_t change_ = 1;  // counts what may have freed memory
  uint64_t swaps_ = 0;
  size_t rotations_ = 0;             // since a rank last began or ended to rest
  Clock::time_point still_since_{};  // nothing has moved since
  std::chrono::milliseconds rotate_after_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_FOLD_TURN_SCHEDULER_H_
