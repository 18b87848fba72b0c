// Waiting for processes, and other functions that are given a pid: which child ended first, and
// how, is an input of the program.
//
// The real call runs without the guard: it may block, and the program's signal handlers run
// meanwhile. In a vfork child there is no engine and the call goes ahead as it is.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/input_calls.h"
#include "preload/calls/process_calls.h"
#include "preload/engine/child_signal.h"
#include "preload/hooks/child_signal_places.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/hooks/process/spawn.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<pid_t (*)(pid_t, int*, int, rusage*)> real_wait4{"wait4"};
constinit RealFn<int (*)(idtype_t, id_t, siginfo_t*, int)> real_waitid{"waitid"};
constinit RealFn<int (*)(pid_t, pid_t)> real_setpgid{"setpgid"};
constinit RealFn<pid_t (*)(pid_t)> real_getpgid{"getpgid"};
constinit RealFn<pid_t (*)(pid_t)> real_getsid{"getsid"};

bool IsWait(const WaitCall& call) {
  return (call.options & WNOHANG) == 0;
}

void Before(Engine& engine, WaitCall& call) {
  if (IsWait(call)) ++t_child_signal.child_waits;
  Guard guard;
  engine.processes->BeforeWait(call);
}

// The program waits again, if it likes.
int EndBySignal(const WaitCall& call) {
  if (IsWait(call)) --t_child_signal.child_waits;
  if (call.is_ended) RunChildSignalHandler();
  errno = EINTR;
  return -1;
}

void After(Engine& engine, WaitCall& call) {
  const ErrnoKeeper keep;
  Guard guard;
  engine.processes->AfterWait(call);
}

int AfterEnded(Engine& engine, const WaitCall& call) {
  {
    Guard guard;
    engine.processes->AfterEndedWait();
  }
  return EndBySignal(call);
}

void AfterVain(Engine& engine, WaitCall& call) {
  const ErrnoKeeper keep;
  Guard guard;
  engine.processes->AfterVainWait(call);
}

pid_t Wait(pid_t pid, int* status, int options, rusage* usage) {
  Engine* engine = EngineForChildren();
  if (engine == nullptr) return real_wait4(pid, status, options, usage);
  WaitCall call{pid, options, 0, 0};
  Before(*engine, call);
  if (call.finds_nothing) return 0;
  if (call.is_ended) return EndBySignal(call);
  {
    const ToldWait told;
    call.result = real_wait4(call.pid, &call.status, options, usage);
  }
  if (call.result < 0 && errno == EINTR) return AfterEnded(*engine, call);
  if (call.result == 0) AfterVain(*engine, call);
  if (call.result <= 0) return call.result;
  After(*engine, call);
  if (status != nullptr) *status = call.status;
  return call.result;
}

// A status as waitpid gives it.
int StatusOf(const siginfo_t& info) {
  switch (info.si_code) {
    case CLD_EXITED:
      return W_EXITCODE(info.si_status, 0);
    case CLD_KILLED:
      return info.si_status;
    case CLD_DUMPED:
      return info.si_status | WCOREFLAG;
    case CLD_CONTINUED:
      return __W_CONTINUED;
    default:
      return W_STOPCODE(info.si_status);
  }
}

void SetStatus(siginfo_t& info, int status) {
  if (WIFEXITED(status)) {
    info.si_code = CLD_EXITED;
    info.si_status = WEXITSTATUS(status);
  } else if (WIFSIGNALED(status)) {
    info.si_code = WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED;
    info.si_status = WTERMSIG(status);
  }
}

pid_t Live(pid_t pid) {
  Engine* engine = EngineForChildren();
  if (engine == nullptr || pid == 0) return pid;
  Guard guard;
  return engine->processes->MapPid(pid);
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT pid_t wait(int* status) {
  return Wait(-1, status, 0, nullptr);
}

DEJA_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  return Wait(pid, status, options, nullptr);
}

DEJA_EXPORT pid_t wait3(int* status, int options, rusage* usage) noexcept {
  return Wait(-1, status, options, usage);
}

DEJA_EXPORT pid_t wait4(pid_t pid, int* status, int options, rusage* usage) noexcept {
  return Wait(pid, status, options, usage);
}

DEJA_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  Engine* engine = EngineForChildren();
  if (engine == nullptr) return real_waitid(type, id, info, options);
  siginfo_t own{};
  siginfo_t& out = info != nullptr ? *info : own;
  WaitCall call{-1, options, 0, 0};
  if (type == P_PID) call.pid = static_cast<pid_t>(id);
  if (type == P_PGID) call.pid = -static_cast<pid_t>(id);
  const pid_t asked = call.pid;
  // What a descriptor means is the kernel's matter.
  const bool is_asked = type == P_ALL || type == P_PID || type == P_PGID;
  if (is_asked) Before(*engine, call);
  if (call.is_ended) return EndBySignal(call);
  if (call.finds_nothing) {
    out = {};
    return 0;
  }
  // The engine may know which of several it must be.
  if (call.pid != asked) {
    type = call.pid > 0 ? P_PID : P_PGID;
    id = static_cast<id_t>(call.pid > 0 ? call.pid : -call.pid);
  }
  out.si_pid = 0;
  const int result = [&] {
    const ToldWait told;
    return real_waitid(type, id, &out, options);
  }();
  if (is_asked && result < 0 && errno == EINTR) return AfterEnded(*engine, call);
  if (result == 0 && out.si_pid == 0) AfterVain(*engine, call);
  if (result != 0 || out.si_pid == 0) return result;
  call.result = out.si_pid;
  call.status = StatusOf(out);
  After(*engine, call);
  out.si_pid = call.result;
  SetStatus(out, call.status);
  return result;
}

DEJA_EXPORT int setpgid(pid_t pid, pid_t group) noexcept {
  return real_setpgid(Live(pid), Live(group));
}

DEJA_EXPORT pid_t getpgid(pid_t pid) noexcept {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_getpgid(pid);
  const pid_t live = Live(pid);
  return static_cast<pid_t>(
      TakeInput(*engine, deja::api::LibcApi::kgetpgid, static_cast<uint64_t>(pid), {},
                [live](InputCall& call) { call.result = real_getpgid(live); }));
}

DEJA_EXPORT pid_t getsid(pid_t pid) noexcept {
  return real_getsid(Live(pid));
}

// Not in every C library; the hook of syscall translates.
DEJA_EXPORT int pidfd_open(pid_t pid, unsigned flags) noexcept {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, flags));
}
