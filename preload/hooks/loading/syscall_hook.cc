// syscall(): programs and libraries that go past the C library's functions (runtimes of other
// languages draw their entropy like this, libstdc++ waits for futures).
// Identity is not served here: who asks the kernel itself wants to know.
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "preload/calls/process_calls.h"
#include "preload/hooks/clock/deadline.h"
#include "preload/hooks/descriptors/own_processes.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/hooks/process/filter_hooks.h"
#include "preload/hooks/process/unrecorded_hooks.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

using SyscallFn = long (*)(long, long, long, long, long, long, long);
constinit RealFn<SyscallFn> real_syscall{"syscall"};

struct Arguments {
  long number;
  long a[6];
};

long Forward(const Arguments& c) {
  return real_syscall(c.number, c.a[0], c.a[1], c.a[2], c.a[3], c.a[4], c.a[5]);
}

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

// The clock by which a futex call ends at a time; -1: its time is a duration, or it has none.
clockid_t ClockOfFutex(const Arguments& c) {
  const bool wall = (c.a[1] & FUTEX_CLOCK_REALTIME) != 0;
  switch (c.a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI2:
      return wall ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    case FUTEX_LOCK_PI:
      return CLOCK_REALTIME;
    default:
      return -1;
  }
}

// With the deadline in argument `at`, by this clock.
long Wait(Arguments c, int at, clockid_t clock) {
  LiveDeadline live(reinterpret_cast<const timespec*>(c.a[at]), clock);
  c.a[at] = reinterpret_cast<long>(live.get());
  return Forward(c);
}

const char* Path(long argument) {
  return reinterpret_cast<const char*>(argument);
}
int Number(long argument) {
  return static_cast<int>(argument);
}

// Calls that name files: the C library's functions know of a replay's overlay. False: none of them.
bool CallOfFiles(const Arguments& c, long* result) {
  switch (c.number) {
    case SYS_open:
      *result = open(Path(c.a[0]), Number(c.a[1]), static_cast<mode_t>(c.a[2]));
      return true;
    case SYS_openat:
      *result = openat(Number(c.a[0]), Path(c.a[1]), Number(c.a[2]), static_cast<mode_t>(c.a[3]));
      return true;
    case SYS_rename:
      *result = rename(Path(c.a[0]), Path(c.a[1]));
      return true;
    case SYS_renameat:
      *result = renameat(Number(c.a[0]), Path(c.a[1]), Number(c.a[2]), Path(c.a[3]));
      return true;
    case SYS_renameat2:
      *result = renameat2(Number(c.a[0]), Path(c.a[1]), Number(c.a[2]), Path(c.a[3]),
                          static_cast<unsigned>(c.a[4]));
      return true;
    case SYS_unlink:
      *result = unlink(Path(c.a[0]));
      return true;
    case SYS_unlinkat:
      *result = unlinkat(Number(c.a[0]), Path(c.a[1]), Number(c.a[2]));
      return true;
    case SYS_mkdir:
      *result = mkdir(Path(c.a[0]), static_cast<mode_t>(c.a[1]));
      return true;
    case SYS_mkdirat:
      *result = mkdirat(Number(c.a[0]), Path(c.a[1]), static_cast<mode_t>(c.a[2]));
      return true;
    case SYS_statx:
      *result = statx(Number(c.a[0]), Path(c.a[1]), Number(c.a[2]), static_cast<unsigned>(c.a[3]),
                      reinterpret_cast<struct statx*>(c.a[4]));
      return true;
    default:
      return false;
  }
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT long syscall(long number, ...) noexcept {
  Arguments c;
  c.number = number;
  va_list list;
  va_start(list, number);
  for (long& a : c.a) a = va_arg(list, long);  // those that were not passed are not used
  va_end(list);
  switch (number) {
    case SYS_getrandom:
      return getrandom(reinterpret_cast<void*>(c.a[0]), static_cast<size_t>(c.a[1]),
                       static_cast<unsigned>(c.a[2]));
    // A direct system call must give the same time as the C library's function.
    case SYS_clock_gettime:
      return clock_gettime(static_cast<clockid_t>(c.a[0]), reinterpret_cast<timespec*>(c.a[1]));
    case SYS_gettimeofday:
      return gettimeofday(reinterpret_cast<timeval*>(c.a[0]), reinterpret_cast<void*>(c.a[1]));
    case SYS_time:
      return time(reinterpret_cast<time_t*>(c.a[0]));
    case SYS_futex:
      if (const clockid_t clock = ClockOfFutex(c); clock >= 0) return Wait(c, 3, clock);
      break;
    case SYS_futex_waitv:
      return Wait(c, 3, static_cast<clockid_t>(c.a[4]));
    case SYS_clock_nanosleep:
      if ((c.a[1] & TIMER_ABSTIME) != 0) return Wait(c, 2, static_cast<clockid_t>(c.a[0]));
      break;
    case SYS_timerfd_settime:
      return timerfd_settime(static_cast<int>(c.a[0]), static_cast<int>(c.a[1]),
                             reinterpret_cast<const itimerspec*>(c.a[2]),
                             reinterpret_cast<itimerspec*>(c.a[3]));
    case SYS_seccomp:
      c.a[1] = BeforeSeccomp(c.a[0], c.a[1], Path(c.a[2]));
      break;
    case SYS_prctl:
      BeforePrctl(c.a[0], c.a[1], Path(c.a[2]));
      break;
    case SYS_io_uring_setup:
      NoteUnrecorded(kIoUring);
      break;
    case SYS_execve:
      return execve(Path(c.a[0]), reinterpret_cast<char* const*>(c.a[1]),
                    reinterpret_cast<char* const*>(c.a[2]));
    case SYS_pidfd_open: {
      Engine* engine = EngineForHook();
      if (engine == nullptr) break;
      {
        const Guard guard;
        c.a[0] = engine->processes->MapPid(static_cast<int>(c.a[0]));
      }
      const long fd = Forward(c);
      if (fd >= 0) NoteProcessDescriptor(static_cast<int>(fd), static_cast<int>(c.a[0]));
      return fd;
    }
    default:
      if (long result = 0; !InsideDeja() && CallOfFiles(c, &result)) return result;
      break;
  }
  return Forward(c);
}
