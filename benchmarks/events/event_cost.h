// Times one call again and again at a pace, and prints medians: for event_cost.cc,
// collective_cost.cc and their peers, so that all are measured in the same way.
//
// hot: one call after the other, with the pace's pause spent spinning. burst: 32 calls one behind
// the other without a fence or a reading between them, then the pause of 32: what a call costs a
// thread that has more to do. cold: 256 KiB of other data are written between calls, so that
// nothing of the tracer is in the first cache; colder: 8 MB, so that it is in no cache of the core.
// The cost of taking the time is measured alike and subtracted.
#ifndef DEJA_BENCHMARKS_EVENTS_EVENT_COST_H_
#define DEJA_BENCHMARKS_EVENTS_EVENT_COST_H_

#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace event_cost {

constexpr uint64_t kEventsASecond = 2000000;

struct State {
  const char* name;
  int count;
  int calls;             // between two readings of the time
  size_t spoiled_bytes;  // before each
};
constexpr State kStates[] = {{"hot", 1000000, 1, 0},
                             {"burst", 30000, 32, 0},
                             {"cold", 20000, 1, 256 << 10},
                             {"colder", 500, 1, 8 << 20}};

inline uint64_t Begin() {
  _mm_lfence();
  return __rdtsc();
}
inline uint64_t End() {
  unsigned aux;
  const uint64_t t = __rdtscp(&aux);
  _mm_lfence();
  return t;
}

inline double TicksPerNs() {
  timespec a{};
  timespec b{};
  clock_gettime(CLOCK_MONOTONIC, &a);
  const uint64_t begin = __rdtsc();
  do {
    clock_gettime(CLOCK_MONOTONIC, &b);
  } while ((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec < 200000000);
  const uint64_t ticks = __rdtsc() - begin;
  return static_cast<double>(ticks) /
         static_cast<double>((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec);
}

template <typename Call>
double MedianNs(Call call, const State& state, int count, double ticks_per_ns, int events) {
  std::vector<uint32_t> took(static_cast<size_t>(count));
  std::vector<char> spoiler(state.spoiled_bytes);
  const auto pause =
      static_cast<uint64_t>(1e9 / kEventsASecond * ticks_per_ns * state.calls * events);
  uint64_t n = 0;
  for (uint32_t& one : took) {
    if (!spoiler.empty()) std::memset(spoiler.data(), static_cast<int>(n), spoiler.size());
    const uint64_t begin = Begin();
    for (int i = 0; i < state.calls; ++i) call(n++);
    const uint64_t end = End();
    one = static_cast<uint32_t>(std::min<uint64_t>(end - begin, UINT32_MAX));
    while (spoiler.empty() && __rdtsc() - begin < pause) {
    }
  }
  std::nth_element(took.begin(), took.begin() + count / 2, took.end());
  return took[static_cast<size_t>(count / 2)] / ticks_per_ns;
}

// `call(n)` makes so many events.
template <typename Call>
void Report(const char* name, Call call, int events = 1) {
  const double ticks_per_ns = TicksPerNs();
  for (const State& state : kStates) {
    const double empty =
        MedianNs([](uint64_t) { asm volatile(""); }, state, state.count / 4, ticks_per_ns, events);
    const double full = MedianNs(call, state, state.count, ticks_per_ns, events);
    std::printf("%s %s %.1f ns\n", name, state.name, (full - empty) / state.calls);
  }
}

}  // namespace event_cost

#endif  // DEJA_BENCHMARKS_EVENTS_EVENT_COST_H_
