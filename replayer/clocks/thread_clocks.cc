#include "replayer/clocks/thread_clocks.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "replayer/plan/wrapping_time.h"

namespace deja::replayer {

using format::ClockSource;

namespace {

constexpr int64_t kSecond = 1000000000;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kDayNs = 24 * kHour;

int64_t Distance(int64_t a, int64_t b) {
  const int64_t d = WrappingMinus(a, b);
  return d == INT64_MIN ? INT64_MAX : std::abs(d);
}

}  // namespace

ClockFamily FamilyOf(ClockSource source) {
  switch (source) {
    case ClockSource::kRealtime:
    case ClockSource::kRealtimeCoarse:
    case ClockSource::kGettimeofday:
    case ClockSource::kTime:
    case ClockSource::kTimespecGet:
      return ClockFamily::kDay;
    case ClockSource::kMonotonic:
    case ClockSource::kMonotonicCoarse:
      return ClockFamily::kMonotonic;
    case ClockSource::kMonotonicRaw:
      return ClockFamily::kMonotonicRaw;
    case ClockSource::kBoottime:
      return ClockFamily::kBoottime;
    case ClockSource::kTai:
      return ClockFamily::kTai;
    case ClockSource::kProcessCpu:
    case ClockSource::kClock:
      return ClockFamily::kProcessCpu;
    case ClockSource::kThreadCpu:
      return ClockFamily::kThreadCpu;
    case ClockSource::kNone:
    case ClockSource::kInterpreterWait:
    case ClockSource::kPythonLock:
    case ClockSource::kUnseen:
    case ClockSource::kLockOutcome:
    case ClockSource::kLockTurn:
      break;
  }
  return ClockFamily::kNone;
}

ClockFamily FamilyOfId(int clock) {
  switch (clock) {
    case CLOCK_REALTIME_ALARM:
      return ClockFamily::kDay;
    case CLOCK_BOOTTIME_ALARM:
      return ClockFamily::kBoottime;
    default:
      if (clock < 0 || clock > CLOCK_TAI) return ClockFamily::kNone;
      return FamilyOf(static_cast<ClockSource>(clock + 1));
  }
}

int64_t LiveClock(ClockFamily family) {
  static constexpr clockid_t kIds[] = {
      CLOCK_REALTIME, CLOCK_MONOTONIC,          CLOCK_MONOTONIC_RAW,    CLOCK_BOOTTIME,
      CLOCK_TAI,      CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
  timespec now{};
  clock_gettime(kIds[static_cast<size_t>(family)], &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

int64_t ThreadClocks::Read(ClockSource source, int64_t live, uint64_t segment) {
  Clock& clock = clocks_[static_cast<size_t>(source)];
  const ClockFamily family = FamilyOf(source);
  if (family == ClockFamily::kNone) return live;
  last_ = source;
  clock_before_ = clock;
  family_before_ = families_[static_cast<size_t>(family)];
  if (!process_.Serves(family)) return live;
  if (!clock.opened) {
    clock.opened = true;
    if (streams_ != nullptr) {
      auto stream = streams_->find(static_cast<uint32_t>(source));
      if (stream != streams_->end()) clock.recorded = ClockStream::Cursor(&stream->second);
    }
  }
  int64_t value;
  if (const std::optional<int64_t> recorded = clock.recorded.Next(segment)) {
    value = *recorded;
    clock.paused = 0;
  } else {
    value = GoOn(clock, family, live);
  }
  // The clocks of the day may be set back; the others never are, and programs rely on it.
  if (clock.told && family != ClockFamily::kDay) value = std::max(value, clock.last);
  clock.told = true;
  clock.last = value;
  clock.live = live;
  Remember(source, family, WrappingMinus(live, value));
  return value;
}

bool ThreadClocks::TakeBack(ClockSource source) {
  if (source == ClockSource::kNone || source != last_) return false;
  const ClockFamily family = FamilyOf(source);
  clocks_[static_cast<size_t>(source)] = clock_before_;
  families_[static_cast<size_t>(family)] = family_before_;
  if (family_before_.read) process_.SetOffset(family, family_before_.offset);
  last_ = ClockSource::kNone;
  return true;
}

int64_t ThreadClocks::GoOn(Clock& clock, ClockFamily family, int64_t live) {
  int64_t value;
  if (clock.told) {
    value = WrappingPlus(clock.last, std::max<int64_t>(WrappingMinus(live, clock.live), 0));
  } else {
    // The first look at this clock: what the thread's other clocks of the family say, or those of
    // other threads.
    const Family& own = families_[static_cast<size_t>(family)];
    value = WrappingMinus(live, own.read ? own.offset : process_.Offset(family));
  }
  const std::optional<int64_t> next = clock.recorded.Peek();
  if (!next) return value;
  const int64_t limit = clock.told ? std::max(*next, clock.last) : *next;
  if (value <= limit) return value;
  const int64_t pause = std::min(kPauseNs - clock.paused, WrappingMinus(value, limit));
  if (pause <= 0) return value;
  clock.paused += pause;
  return WrappingMinus(value, pause);
}

void ThreadClocks::Remember(ClockSource source, ClockFamily family, int64_t offset) {
  Family& own = families_[static_cast<size_t>(family)];
  own.read_since = true;
  // Whole seconds say less than what is known, unless they say something else.
  if (source == ClockSource::kTime && own.read && Distance(offset, own.offset) <= kSecond) return;
  own.read = true;
  own.offset = offset;
  process_.SetOffset(family, offset);
}

int64_t ThreadClocks::DeadlineOffset(ClockFamily family, int64_t deadline) {
  if (!process_.Serves(family)) return 0;
  Family& own = families_[static_cast<size_t>(family)];
  int64_t offset;
  if (own.read_since || (own.read && !own.waited)) {
    offset = own.offset;  // computed from what the thread was served just now
  } else if (own.waited && own.deadline == deadline) {
    offset = own.added;  // the same wait, again
  } else {
    offset = process_.Offset(family);  // handed over by another thread
  }
  // Recorded on another day: a deadline that is near the live clock comes from there, by a way that
  // is not hooked.
  if (Distance(offset, 0) > kDayNs && Distance(deadline, LiveClock(family)) < kHour) offset = 0;
  own.read_since = false;
  own.waited = true;
  own.deadline = deadline;
  own.added = offset;
  return offset;
}

}  // namespace deja::replayer
