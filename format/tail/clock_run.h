// Clock readings: which clocks there are, and how many readings become one event. What threads do
// to locks (lock_reading.h) goes the same way.
//
// Pure functions; any thread, signal handlers too; no allocation.
#ifndef DEJA_FORMAT_TAIL_CLOCK_RUN_H_
#define DEJA_FORMAT_TAIL_CLOCK_RUN_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/tail/tail_format.h"
#include "format/wire/messages.h"

namespace deja::format {

// What a reading was of. On disk: append only, docs/FORMAT.md has the list. The clock ids of
// clock_gettime are these numbers minus one; all values are nanoseconds.
enum class ClockSource : uint8_t {
  kNone = 0,
  kRealtime = 1,
  kMonotonic = 2,
  kProcessCpu = 3,
  kThreadCpu = 4,
  kMonotonicRaw = 5,
  kRealtimeCoarse = 6,
  kMonotonicCoarse = 7,
  kBoottime = 8,
  kTai = 12,
  kGettimeofday = 32,
  kTime = 33,
  kTimespecGet = 34,
  kClock = 35,
  // A reading for a wait for Python's interpreter lock, which the program does not see.
  kInterpreterWait = 36,
  // One that a lock of Python's made as a thread took it, which the program does not see either.
  kPythonLock = 37,
  // No clock: the thread's last reading of the source that is the value was not seen either. Where
  // a reading is an event of its own, it cannot be given another source.
  kUnseen = 38,
  // No clocks: lock_reading.h.
  kLockOutcome = 48,
  kLockTurn = 64,  // and those after it
};
inline constexpr size_t kClockSources = 36;  // that are clocks of the program
inline constexpr uint32_t kLockTurnSources = 64;
inline constexpr size_t kReadingSources = 128;
static_assert(kMaxClockReads == kMaxClockRun);

// A reading that the program has not seen: no replay serves it.
inline bool IsUnseenReading(ClockSource source) {
  return source == ClockSource::kInterpreterWait || source == ClockSource::kPythonLock;
}

// "clock_gettime(CLOCK_REALTIME)"; null for a number that is none.
const char* ClockSourceName(uint32_t source);

// Room that an event with a full run needs.
inline constexpr size_t kMaxClockRunBytes = 1024;

// The event of these readings (at most kMaxClockReads, at least one): what EncodeEvent writes for
// the ClockRun, faster. `out` has kMaxClockRunBytes. Returns the number of bytes.
size_t EncodeClockRun(const EventHead& head, std::span<const uint8_t> sources,
                      std::span<const int64_t> values, std::byte* out);

// Calls visit(source, value) for each reading.
template <typename Function>
void ForEachReading(const ClockRun& run, Function visit) {
  int64_t last[kReadingSources] = {};
  uint32_t source = 0;
  for (size_t i = 0; i < run.deltas.size(); ++i) {
    if (i < run.sources.size()) source = run.sources[i];
    if (source >= kReadingSources) continue;  // of a newer version
    // As unsigned numbers: a trace may say anything.
    last[source] = static_cast<int64_t>(static_cast<uint64_t>(last[source]) +
                                        static_cast<uint64_t>(run.deltas[i]));
    visit(static_cast<ClockSource>(source), last[source]);
  }
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_CLOCK_RUN_H_
