// Signals to processes: a replay reaches no process but its own. A pid that was served means the
// live process.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/calls/process_calls.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(pid_t, int)> real_kill{"kill"};
constinit RealFn<int (*)(pid_t, int)> real_killpg{"killpg"};
constinit RealFn<int (*)(pid_t, pid_t, int)> real_tgkill{"tgkill"};
constinit RealFn<int (*)(pid_t, int, const sigval)> real_sigqueue{"sigqueue"};

// False if the signal must not be sent. `pid` becomes the live one.
bool MaySignal(pid_t& pid, int signal) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return true;
  Guard guard;
  pid = engine->processes->MapPid(pid);
  return engine->processes->MayKill(pid, signal);
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int kill(pid_t pid, int signal) noexcept {
  return MaySignal(pid, signal) ? real_kill(pid, signal) : -1;
}

// As kill of the negative number, except for the group of the caller.
DEJA_EXPORT int killpg(pid_t group, int signal) noexcept {
  pid_t target = group > 0 ? -group : 0;
  if (!MaySignal(target, signal)) return -1;
  return real_killpg(target < 0 ? -target : group, signal);
}

DEJA_EXPORT int tgkill(pid_t pid, pid_t tid, int signal) {
  bool main_thread = pid == tid;
  if (!MaySignal(pid, signal)) return -1;
  return real_tgkill(pid, main_thread ? pid : tid, signal);
}

DEJA_EXPORT int sigqueue(pid_t pid, int signal, const sigval value) noexcept {
  return MaySignal(pid, signal) ? real_sigqueue(pid, signal, value) : -1;
}
