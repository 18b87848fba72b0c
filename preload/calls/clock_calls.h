// ClockCalls: what an engine does with clocks and deadlines.
//
// Any thread, with the guard held. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_CLOCK_CALLS_H_
#define DEJA_PRELOAD_CALLS_CLOCK_CALLS_H_

#include <cstdint>

#include "format/tail/clock_run.h"

namespace deja::preload {

// What Python made a reading for. It waits for the interpreter's lock, up to a time that it
// computes from that. Or a thread takes one of Python's own locks, or tries to.
enum class UnseenReading : uint8_t { kInterpreterWait, kPythonLock };

class ClockCalls {
 public:
  // The program reads a clock, which says `live_ns`. Returns what the program gets. errno is kept.
  virtual int64_t OnClock(format::ClockSource source, int64_t live_ns) {
    (void)source;
    return live_ns;
  }

  // The program does not see the thread's last reading, one of `source`. How often the interpreter
  // makes one is a matter of time. errno need not be kept.
  virtual void OnUnseenReading(format::ClockSource source, UnseenReading made_for) {
    (void)source;
    (void)made_for;
  }

  // One of Python's locks reads a clock, for no wait or for one with a deadline. False: it gets
  // the live clock, and OnClock is not called.
  virtual bool TellsPythonLocks() { return false; }

  // Nanoseconds to add to a deadline of the program, a time by `clock`, before the wait
  // (pthread_cond_timedwait, sem_timedwait, clock_nanosleep with TIMER_ABSTIME …). A replay gives
  // recorded times, and waits run on the live clock. errno need not be kept.
  virtual int64_t DeadlineOffsetNs(int clock, int64_t deadline_ns) {
    (void)clock;
    (void)deadline_ns;
    return 0;
  }

 protected:
  ~ClockCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_CLOCK_CALLS_H_
