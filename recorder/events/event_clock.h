// EventClock: CLOCK_MONOTONIC for the times of events, at less than half the price.
//
// Where the kernel itself keeps time by the processor's counter, the counter is read. The rest is
// arithmetic: a line through the last two comparisons with the kernel's clock. Any thread repeats
// the comparison when a second has passed. Elsewhere, and until the line is known, the kernel's
// clock is read. Times are off by a microsecond or so, and may seem to go back by as much: they
// order events, and programs never get them.
//
// Any thread, signal handlers too. Keeps errno, allocates nothing.
#ifndef DEJA_RECORDER_EVENTS_EVENT_CLOCK_H_
#define DEJA_RECORDER_EVENTS_EVENT_CLOCK_H_

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace deja::recorder {

// Asks the kernel once whether the counter may be used: system calls. Before that, NowNs() reads
// the kernel's clock.
void StartEventClock();

// The line: time is base_ns + (counter - base) * slope / 2^32, for `span` ticks. `version` is odd
// while a thread changes it.
struct alignas(64) ClockLine {
  std::atomic<uint64_t> version{0};
  std::atomic<uint64_t> base{0};
  std::atomic<uint64_t> base_ns{0};
  std::atomic<uint64_t> slope{0};
  std::atomic<uint64_t> span{0};  // 0: there is no line
};
extern constinit ClockLine g_clock_line;

// Reads the kernel's clock, and renews the line if it is time to.
uint64_t EventNowSlowly();

inline uint64_t EventNowNs() {
#if defined(__x86_64__)
  const ClockLine& line = g_clock_line;
  const uint64_t version = line.version.load(std::memory_order_acquire);
  const uint64_t span = line.span.load(std::memory_order_relaxed);
  const uint64_t base = line.base.load(std::memory_order_relaxed);
  const uint64_t base_ns = line.base_ns.load(std::memory_order_relaxed);
  const uint64_t slope = line.slope.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  const bool whole = (version & 1) == 0 && line.version.load(std::memory_order_relaxed) == version;
  if (whole && span != 0) [[likely]] {
    const uint64_t ticks = __rdtsc() - base;
    if (ticks < span) [[likely]]
      return base_ns + static_cast<uint64_t>(static_cast<unsigned __int128>(ticks) * slope >> 32);
  }
#endif
  return EventNowSlowly();
}

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_EVENT_CLOCK_H_
