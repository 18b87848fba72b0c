// Waits and timers that end at a time by a clock; those for locks are in lock_hooks.cc.
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>

#include <atomic>
#include <cerrno>

#include "common/os/small_file.h"
#include "common/runtime/errno_keeper.h"
#include "preload/hooks/child_signal_places.h"
#include "preload/hooks/clock/deadline.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(clockid_t, int, const timespec*, timespec*)> real_clock_nanosleep{
    "clock_nanosleep"};
constinit RealFn<ssize_t (*)(mqd_t, char*, size_t, unsigned*, const timespec*)>
    real_mq_timedreceive{"mq_timedreceive"};
constinit RealFn<int (*)(mqd_t, const char*, size_t, unsigned, const timespec*)> real_mq_timedsend{
    "mq_timedsend"};
constinit RealFn<int (*)(int, int, const itimerspec*, itimerspec*)> real_timerfd_settime{
    "timerfd_settime"};
constinit RealFn<int (*)(clockid_t, sigevent*, timer_t*)> real_timer_create{"timer_create"};
constinit RealFn<int (*)(timer_t, int, const itimerspec*, itimerspec*)> real_timer_settime{
    "timer_settime"};

// The clock of a timer descriptor, which the kernel tells; -1 if it does not.
int ClockOfTimerFd(int fd) {
  const ErrnoKeeper keep;
  const Guard guard;
  char path[40];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
  char text[1024];
  if (ReadSmallFile(path, text, sizeof text) == 0) return -1;
  int clock = -1;
  const char* line = strstr(text, "clockid: ");
  return line != nullptr && sscanf(line, "clockid: %d", &clock) == 1 ? clock : -1;
}

// The clocks of the process's timers. One that finds no place here keeps its deadlines as they are.
struct TimerClock {
  std::atomic<bool> used{false};
  timer_t timer{};
  clockid_t clock{};
};
constinit TimerClock g_timers[64];

void RememberTimer(timer_t timer, clockid_t clock) {
  for (TimerClock& known : g_timers) {
    if (known.used.load(std::memory_order_acquire) && known.timer == timer) {  // an id that is back
      known.clock = clock;
      return;
    }
  }
  for (TimerClock& known : g_timers) {
    bool free = false;
    if (!known.used.compare_exchange_strong(free, true, std::memory_order_acq_rel)) continue;
    known.timer = timer;
    known.clock = clock;
    return;
  }
}

clockid_t ClockOfTimer(timer_t timer) {
  for (const TimerClock& known : g_timers)
    if (known.used.load(std::memory_order_acquire) && known.timer == timer) return known.clock;
  return -1;
}

// The same timer with its first expiry translated. A zero disarms it and stays.
itimerspec Translated(const itimerspec& setting, clockid_t clock) {
  itimerspec live = setting;
  if (live.it_value.tv_sec == 0 && live.it_value.tv_nsec == 0) return live;
  LiveDeadline deadline(&setting.it_value, clock);
  live.it_value = *deadline.get();
  return live;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

// Functions that end in a deadline, on the wall clock or on one that is named.
#define DEJA_DEADLINE_HOOK(name, clock, parameters, arguments)                           \
  DEJA_EXPORT int name(DEJA_LIST parameters, const timespec* deadline) {                 \
    static constinit RealFn<int (*)(DEJA_LIST parameters, const timespec*)> real{#name}; \
    LiveDeadline live(deadline, clock);                                                  \
    return real(DEJA_LIST arguments, live.get());                                        \
  }
#define DEJA_LIST(...) __VA_ARGS__

// clang-format off
DEJA_DEADLINE_HOOK(pthread_timedjoin_np, CLOCK_REALTIME, (pthread_t thread, void** result), (thread, result))
DEJA_DEADLINE_HOOK(pthread_clockjoin_np, clock, (pthread_t thread, void** result, clockid_t clock), (thread, result, clock))
// clang-format on

DEJA_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* request,
                                timespec* left) {
  const SleepCall sleep;
  if (sleep.is_ended()) {
    if ((flags & TIMER_ABSTIME) == 0 && left != nullptr && request != nullptr) *left = *request;
    return EINTR;
  }
  int result = 0;
  if ((flags & TIMER_ABSTIME) == 0) {
    timespec rest{};
    for (const timespec* span = request;; span = &rest) {
      result = real_clock_nanosleep(clock, flags, span, &rest);
      if (result != EINTR || !SleepCall::GoesOn()) break;
    }
    if (result == EINTR && left != nullptr) *left = rest;
    return result;
  }
  LiveDeadline live(request, clock);
  do {
    result = real_clock_nanosleep(clock, flags, live.get(), left);
  } while (result == EINTR && SleepCall::GoesOn());
  return result;
}

DEJA_EXPORT ssize_t mq_timedreceive(mqd_t queue, char* __restrict message, size_t size,
                                    unsigned* __restrict priority,
                                    const timespec* __restrict deadline) {
  LiveDeadline live(deadline, CLOCK_REALTIME);
  return real_mq_timedreceive(queue, message, size, priority, live.get());
}

DEJA_EXPORT int mq_timedsend(mqd_t queue, const char* message, size_t size, unsigned priority,
                             const timespec* deadline) {
  LiveDeadline live(deadline, CLOCK_REALTIME);
  return real_mq_timedsend(queue, message, size, priority, live.get());
}

DEJA_EXPORT int timerfd_settime(int fd, int flags, const itimerspec* setting,
                                itimerspec* old) noexcept {
  if ((flags & TFD_TIMER_ABSTIME) == 0 || setting == nullptr || EngineForHook() == nullptr)
    return real_timerfd_settime(fd, flags, setting, old);
  const itimerspec live = Translated(*setting, ClockOfTimerFd(fd));
  return real_timerfd_settime(fd, flags, &live, old);
}

DEJA_EXPORT int timer_create(clockid_t clock, sigevent* __restrict event,
                             timer_t* __restrict timer) noexcept {
  const int result = real_timer_create(clock, event, timer);
  if (result == 0) RememberTimer(*timer, clock);
  return result;
}

DEJA_EXPORT int timer_settime(timer_t timer, int flags, const itimerspec* __restrict setting,
                              itimerspec* __restrict old) noexcept {
  if ((flags & TIMER_ABSTIME) == 0 || setting == nullptr || EngineForHook() == nullptr)
    return real_timer_settime(timer, flags, setting, old);
  const itimerspec live = Translated(*setting, ClockOfTimer(timer));
  return real_timer_settime(timer, flags, &live, old);
}
