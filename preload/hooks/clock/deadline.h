// Deadlines on the clocks that a replay serves. The program computes them from recorded times, and
// waits run on the live clock, so the difference is added before the real call.
//
// Any thread; no allocation; errno is kept.
#ifndef DEJA_PRELOAD_HOOKS_CLOCK_DEADLINE_H_
#define DEJA_PRELOAD_HOOKS_CLOCK_DEADLINE_H_

#include <time.h>

#include <cstdint>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/clock_calls.h"
#include "preload/hooks/input.h"

namespace deja::preload {

// The deadline to wait for: `deadline` itself, or its translation.
class LiveDeadline {
 public:
  // `deadline`: of `clock`, borrowed; may be null or invalid.
  LiveDeadline(const timespec* deadline, clockid_t clock) : deadline_(deadline) {
    // What is not a time is left to the real function to refuse; what is further away than any
    // wait stays so.
    if (deadline == nullptr || deadline->tv_nsec < 0 || deadline->tv_nsec >= kSecond ||
        deadline->tv_sec < 0 || deadline->tv_sec > kForever) {
      return;
    }
    Engine* engine = EngineForHook();
    if (engine == nullptr) return;
    const int64_t ns = deadline->tv_sec * kSecond + deadline->tv_nsec;
    int64_t offset;
    {
      const ErrnoKeeper keep;
      Guard guard;
      offset = engine->clocks->DeadlineOffsetNs(clock, ns);
    }
    if (offset == 0) return;
    const int64_t live = ns + offset;
    // A clock cannot wait for what is before its beginning; a deadline of zero disarms a timer.
    if (live > 0)
      live_ = {live / kSecond, live % kSecond};
    else
      live_ = {0, 1};
    deadline_ = &live_;
  }
  LiveDeadline(const LiveDeadline&) = delete;
  LiveDeadline& operator=(const LiveDeadline&) = delete;
  [[nodiscard]] const timespec* get() const { return deadline_; }

 private:
  static constexpr int64_t kSecond = 1000000000;
  static constexpr int64_t kForever = 4000000000;  // the year 2096

  const timespec* deadline_;
  timespec live_{};
};

// The thread's last reading was one of `clock`. After a deadline that comes of it is a
// LiveDeadline.
inline void TellUnseenReading(clockid_t clock, UnseenReading made_for) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return;
  const ErrnoKeeper keep;
  const Guard guard;
  engine->clocks->OnUnseenReading(static_cast<format::ClockSource>(clock + 1), made_for);
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_CLOCK_DEADLINE_H_
