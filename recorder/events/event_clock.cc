#include "recorder/events/event_clock.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "common/runtime/errno_keeper.h"

namespace deja::recorder {

constinit ClockLine g_clock_line;

namespace {

constexpr uint64_t kSecond = 1000000000;
// Time between the two comparisons of the first line.
constexpr uint64_t kFirstSpan = kSecond / 20;
constexpr int kShift = 32;

uint64_t KernelNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t Counter() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

constinit std::atomic<bool> g_usable{false};
// The comparison before, to measure the counter's rate by; only by the holder of
// g_clock_line.version odd.
constinit uint64_t g_then_counter = 0;
constinit uint64_t g_then_ns = 0;
// While there is no line: not before this time.
constinit std::atomic<uint64_t> g_renew_at{0};

// A counter value and the time that belongs to it: the best of three.
void Compare(uint64_t& counter, uint64_t& ns) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = Counter();
    const uint64_t now = KernelNs();
    const uint64_t after = Counter();
    if (after - before >= best) continue;
    best = after - before;
    counter = before + best / 2;
    ns = now;
  }
}

// Makes the next line. One thread at a time; others read the kernel's clock meanwhile.
void Renew() {
  uint64_t version = g_clock_line.version.load(std::memory_order_relaxed);
  if ((version & 1) != 0 || !g_clock_line.version.compare_exchange_strong(
                                version, version + 1, std::memory_order_acquire)) {
    return;
  }
  std::atomic_thread_fence(std::memory_order_release);
  uint64_t counter = 0;
  uint64_t ns = 0;
  Compare(counter, ns);
  uint64_t slope = 0;
  if (g_then_ns != 0 && counter > g_then_counter && ns > g_then_ns) {
    slope = static_cast<uint64_t>((static_cast<unsigned __int128>(ns - g_then_ns) << kShift) /
                                  (counter - g_then_counter));
  }
  g_clock_line.base.store(counter, std::memory_order_relaxed);
  g_clock_line.base_ns.store(ns, std::memory_order_relaxed);
  g_clock_line.slope.store(slope, std::memory_order_relaxed);
  g_clock_line.span.store(slope == 0 ? 0 : (kSecond << kShift) / slope, std::memory_order_relaxed);
  g_renew_at.store(slope == 0 ? ns + kFirstSpan : 0, std::memory_order_relaxed);
  g_then_counter = counter;
  g_then_ns = ns;
  g_clock_line.version.store(version + 2, std::memory_order_release);
}

}  // namespace

void StartEventClock() {
#if defined(__x86_64__)
  const ErrnoKeeper keep;
  const auto fd = static_cast<int>(syscall(
      SYS_openat, AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
      O_RDONLY | O_CLOEXEC));
  if (fd >= 0) {
    char name[8] = {};
    const long size = syscall(SYS_read, fd, name, sizeof name - 1);
    syscall(SYS_close, fd);
    if (size >= 3 && std::strncmp(name, "tsc\n", 4) == 0)
      g_usable.store(true, std::memory_order_release);
  }
#endif
}

uint64_t EventNowSlowly() {
  const uint64_t now = KernelNs();
  if (g_usable.load(std::memory_order_relaxed) && now >= g_renew_at.load(std::memory_order_relaxed))
    Renew();
  return now;
}

}  // namespace deja::recorder
