// ThreadClocks: what one thread of a replay gets when it reads a clock. It also tells the real time
// of a deadline that the thread computed from a reading. docs/decisions has the reasons ("Clocks
// are served, deadlines translated").
//
// A reading that the recording has is served as recorded. If a thread reads more often than
// recorded, time goes on from the last value that it got, at the pace of the live clock. It does
// not at once pass what the recording serves later. Within one clock of one thread time never goes
// back, except for the clocks of the day, which are always served as recorded.
//
// Owned by its thread. What threads share is in ProcessClocks, which any thread may use.
#ifndef DEJA_REPLAYER_CLOCKS_THREAD_CLOCKS_H_
#define DEJA_REPLAYER_CLOCKS_THREAD_CLOCKS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "format/tail/clock_run.h"
#include "replayer/core/session_options.h"
#include "replayer/plan/clock_stream.h"

namespace deja::replayer {

// Clocks whose values can be compared with one another.
enum class ClockFamily : uint8_t {
  kDay,
  kMonotonic,
  kMonotonicRaw,
  kBoottime,
  kTai,
  kProcessCpu,
  kThreadCpu,
  kNone,
};
inline constexpr size_t kClockFamilies = static_cast<size_t>(ClockFamily::kNone);

ClockFamily FamilyOf(format::ClockSource source);
// The family of a clock id as waits and timers name it.
ClockFamily FamilyOfId(int clock);

// What the live clock of a family says.
int64_t LiveClock(ClockFamily family);

// What the threads of a replay know together: for each family, how far the live clock is ahead of
// the recorded one. The last thread that read a time decides.
class ProcessClocks {
 public:
  void SetMode(ClockMode mode) { mode_ = mode; }
  // A family that no thread read in the recording stays live.
  void Start(ClockFamily family, int64_t offset) {
    Family& f = At(family);
    f.offset.store(offset, std::memory_order_relaxed);
    f.served.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool Serves(ClockFamily family) const {
    if (family == ClockFamily::kNone || mode_ == ClockMode::kLive) return false;
    if (mode_ == ClockMode::kDay && family != ClockFamily::kDay && family != ClockFamily::kTai)
      return false;
    return families_[static_cast<size_t>(family)].served.load(std::memory_order_acquire);
  }
  [[nodiscard]] int64_t Offset(ClockFamily family) const {
    return families_[static_cast<size_t>(family)].offset.load(std::memory_order_relaxed);
  }
  void SetOffset(ClockFamily family, int64_t offset) {
    At(family).offset.store(offset, std::memory_order_relaxed);
  }

 private:
  struct Family {
    std::atomic<bool> served{false};
    std::atomic<int64_t> offset{0};
  };
  Family& At(ClockFamily family) { return families_[static_cast<size_t>(family)]; }

  ClockMode mode_ = ClockMode::kServed;
  std::array<Family, kClockFamilies> families_;
};

class ThreadClocks {
 public:
  // The longest total time for which a clock pauses before the next recorded reading, when the
  // thread reads more often than recorded. It ends, since what the thread waits for may not come.
  static constexpr int64_t kPauseNs = 1000000000;

  // `streams`: of the recorded thread, by source; null for a thread that was not recorded.
  ThreadClocks(ProcessClocks& process, const std::map<uint32_t, ClockStream>* streams)
      : process_(process), streams_(streams) {}

  // What the thread gets while the clock says `live`. `segment`: see ClockStream.
  int64_t Read(format::ClockSource source, int64_t live, uint64_t segment);

  // From here on the thread's last reading has not been, if it was one of `source`; a deadline that
  // comes from it has been translated. False: it was another one, or has been taken back.
  bool TakeBack(format::ClockSource source);

  // What to add to a deadline of the thread before it is waited for.
  int64_t DeadlineOffset(ClockFamily family, int64_t deadline);

 private:
  struct Clock {
    ClockStream::Cursor recorded;
    bool opened = false;
    bool told = false;
    int64_t last = 0;    // told
    int64_t live = 0;    // what the live clock said then
    int64_t paused = 0;  // since the last recorded reading
  };
  struct Family {
    bool read = false;        // by this thread at all
    bool read_since = false;  // since its last wait
    int64_t offset = 0;       // live - served, at the last reading
    bool waited = false;
    int64_t deadline = 0;  // of the last wait, and what was added to it
    int64_t added = 0;
  };

  int64_t GoOn(Clock& clock, ClockFamily family, int64_t live);
  void Remember(format::ClockSource source, ClockFamily family, int64_t offset);

  ProcessClocks& process_;
  const std::map<uint32_t, ClockStream>* const streams_;
  std::array<Clock, format::kClockSources> clocks_;
  std::array<Family, kClockFamilies> families_;
  // What was read last, and what was known before.
  format::ClockSource last_ = format::ClockSource::kNone;
  Clock clock_before_;
  Family family_before_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CLOCKS_THREAD_CLOCKS_H_
