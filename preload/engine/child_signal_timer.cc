#include "preload/engine/child_signal_timer.h"

#include <sys/syscall.h>

#include <csignal>
#include <ctime>

#include "common/runtime/raw_syscall.h"

namespace deja::preload {

namespace {

// The kernel's own: glibc's timers have a lock, and numbers that the program sees.
constinit int g_timer = 0;
constinit long g_made_by = 0;  // a forked child does not have it

}  // namespace

bool StartChildSignalTimer(uint32_t delay_ms) {
  const long pid = RawSyscall(SYS_getpid);
  if (pid != g_made_by) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGCHLD;
    event._sigev_un._tid = static_cast<pid_t>(RawSyscall(SYS_gettid));
    if (RawSyscall(SYS_timer_create, CLOCK_MONOTONIC, reinterpret_cast<long>(&event),
                   reinterpret_cast<long>(&g_timer)) != 0)
      return false;
    g_made_by = pid;
  }
  const itimerspec setting{{}, {0, static_cast<long>(delay_ms) * 1'000'000}};
  return RawSyscall(SYS_timer_settime, g_timer, 0, reinterpret_cast<long>(&setting)) == 0;
}

void StopChildSignalTimer() {
  if (RawSyscall(SYS_getpid) != g_made_by) return;
  RawSyscall(SYS_timer_delete, g_timer);  // a process with timers is not copied (replayer/forks/)
  g_made_by = 0;
}

}  // namespace deja::preload
