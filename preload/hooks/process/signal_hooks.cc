// The program's signal handlers, kept by signals.cc for the signals that Deja watches.
#include <signal.h>

#include <cerrno>

#include "preload/engine/signals.h"
#include "preload/hooks/export.h"
#include "preload/hooks/process/child_signal_hook.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

using Handler = void (*)(int);

constinit RealFn<int (*)(int, const struct sigaction*, struct sigaction*)> real_sigaction{
    "sigaction"};
constinit RealFn<Handler (*)(int, Handler)> real_signal{"signal"};
constinit RealFn<Handler (*)(int, Handler)> real_sysv_signal{"__sysv_signal"};
constinit RealFn<Handler (*)(int, Handler)> real_sigset{"sigset"};

// signal in terms of sigaction.
Handler SetHandler(int signal, Handler handler, int flags, bool mask_self) {
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (mask_self) sigaddset(&action.sa_mask, signal);
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  return SetProgramAction(signal, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

Handler SetBsd(int signal, Handler handler) {
  if (!IsWatched(signal)) return real_signal(signal, handler);
  return SetHandler(signal, handler, SA_RESTART, true);
}

Handler SetSystemV(int signal, Handler handler) {
  if (!IsWatched(signal)) return real_sysv_signal(signal, handler);
  return SetHandler(signal, handler, SA_RESETHAND | SA_NODEFER, false);
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int sigaction(int signal, const struct sigaction* action,
                          struct sigaction* old) noexcept {
  if (IsChildSignal(signal, action)) return SetChildSignalAction(action, old);
  if (!IsWatched(signal)) return real_sigaction(signal, action, old);
  return SetProgramAction(signal, action, old);
}

DEJA_EXPORT int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
  return SetProgramStack(stack, old);
}

DEJA_EXPORT Handler signal(int signal, Handler handler) noexcept {
  return SetBsd(signal, handler);
}

DEJA_EXPORT Handler bsd_signal(int signal, Handler handler) noexcept {
  return SetBsd(signal, handler);
}

DEJA_EXPORT Handler ssignal(int signal, Handler handler) noexcept {
  return SetBsd(signal, handler);
}

DEJA_EXPORT Handler sysv_signal(int signal, Handler handler) noexcept {
  return SetSystemV(signal, handler);
}

DEJA_EXPORT Handler __sysv_signal(int signal, Handler handler) noexcept {
  return SetSystemV(signal, handler);
}

// Blocks, unblocks or sets; tells whether the signal was blocked.
DEJA_EXPORT Handler sigset(int signal, Handler handler) noexcept {
  if (!IsWatched(signal)) return real_sigset(signal, handler);
  sigset_t one;
  sigset_t before;
  sigemptyset(&one);
  sigaddset(&one, signal);
  bool hold = handler == SIG_HOLD;
  if (sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &one, &before) != 0) return SIG_ERR;
  struct sigaction old {};
  Handler previous = SIG_ERR;
  if (hold) {
    if (SetProgramAction(signal, nullptr, &old) == 0) previous = old.sa_handler;
  } else {
    previous = SetHandler(signal, handler, 0, false);
  }
  return sigismember(&before, signal) != 0 ? SIG_HOLD : previous;
}
