// Times one call again and again at a pace, and prints medians: for event_cost.cc and its peer, so
// that both are measured in the same way.
//
// hot: one call after the other, with the pace's pause spent spinning. cold: 8 MB are written
// between calls, so that nothing of the tracer is in the nearer caches. The cost of taking the time
// is measured alike and subtracted.
#ifndef DEJA_BENCHMARKS_EVENT_COST_H_
#define DEJA_BENCHMARKS_EVENT_COST_H_

#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace event_cost {

constexpr uint64_t kEventsASecond = 2000000;
constexpr int kHot = 1000000;
constexpr int kCold = 500;

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
double MedianNs(Call call, int count, bool cold, double ticks_per_ns) {
  std::vector<uint32_t> took(static_cast<size_t>(count));
  std::vector<char> spoiler(cold ? 8 << 20 : 0);
  const auto pause = static_cast<uint64_t>(1e9 / kEventsASecond * ticks_per_ns);
  uint64_t n = 0;
  for (uint32_t& one : took) {
    if (cold) std::memset(spoiler.data(), static_cast<int>(n), spoiler.size());
    const uint64_t begin = Begin();
    call(n++);
    const uint64_t end = End();
    one = static_cast<uint32_t>(std::min<uint64_t>(end - begin, UINT32_MAX));
    while (!cold && __rdtsc() - begin < pause) {
    }
  }
  std::nth_element(took.begin(), took.begin() + count / 2, took.end());
  return took[static_cast<size_t>(count / 2)] / ticks_per_ns;
}

// `call(n)` makes one event.
template <typename Call>
void Report(const char* name, Call call) {
  const double ticks_per_ns = TicksPerNs();
  for (const bool cold : {false, true}) {
    const int count = cold ? kCold : kHot;
    const double empty = MedianNs([](uint64_t) {}, count / 4, cold, ticks_per_ns);
    const double full = MedianNs(call, count, cold, ticks_per_ns);
    std::printf("%s %s %.1f ns\n", name, cold ? "cold" : "hot", full - empty);
  }
}

}  // namespace event_cost

#endif  // DEJA_BENCHMARKS_EVENT_COST_H_
