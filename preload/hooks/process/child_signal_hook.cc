#include "preload/hooks/process/child_signal_hook.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/process_calls.h"
#include "preload/engine/child_signal.h"
#include "preload/engine/engine.h"
#include "preload/hooks/child_signal_places.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {

namespace {

using Handler = void (*)(int);

constinit RealFn<int (*)(int, const struct sigaction*, struct sigaction*)> real_sigaction{
    "sigaction"};

bool IsPlainHandler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler != SIG_DFL &&
         action.sa_handler != SIG_IGN;
}

bool IsOfInterpreter(Handler handler) {
  const Guard guard;
  void* checks = TryDlsym(RTLD_DEFAULT, "PyErr_CheckSignals");
  Dl_info of_checks{};
  Dl_info of_handler{};
  return checks != nullptr && dladdr(checks, &of_checks) != 0 &&
         dladdr(reinterpret_cast<void*>(handler), &of_handler) != 0 &&
         of_checks.dli_fbase == of_handler.dli_fbase;
}

bool IsCallEnded(const ucontext_t& context) {
#if defined(__x86_64__)
  const auto result = static_cast<int64_t>(context.uc_mcontext.gregs[REG_RAX]);
#else
  const auto result = static_cast<int64_t>(context.uc_mcontext.regs[0]);
#endif
  return result == -EINTR && t_child_signal.deaf_waits == 0;
}

ChildSignalCause CauseOf(const siginfo_t& info, bool is_call_ended) {
  if (info.si_code == SI_TIMER) return ChildSignalCause::kSentAgain;
  return is_call_ended ? ChildSignalCause::kEndedWait : ChildSignalCause::kOther;
}

void OnChildSignal(int, siginfo_t* info, void* context) {
  const ErrnoKeeper keep;
  const Engine* engine = EngineOfThisProcess();
  // Python's own handlers run on the first thread.
  const bool is_first = syscall(SYS_gettid) == syscall(SYS_getpid);
  const bool is_call_ended = IsCallEnded(*static_cast<ucontext_t*>(context));
  ChildSignal& signal = t_child_signal;
  if (engine != nullptr && is_first &&
      !engine->processes->OnChildSignal(CauseOf(*info, is_call_ended))) {
    signal.was_kept = true;
    return;
  }
  const bool before = std::exchange(signal.ends_told_wait, is_call_ended && signal.told_waits != 0);
  RunChildSignalHandler();
  signal.ends_told_wait = before;
}

bool IsOurs(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &OnChildSignal;
}

}  // namespace

bool IsChildSignal(int signal, const struct sigaction* action) {
  if (signal != SIGCHLD) return false;
  if (g_child_signal_handler.load(std::memory_order_acquire) != nullptr) return true;
  return action != nullptr && IsPlainHandler(*action) && EngineOfThisProcess() != nullptr &&
         IsOfInterpreter(action->sa_handler);
}

int SetChildSignalAction(const struct sigaction* action, struct sigaction* old) {
  const FileCall counted;
  const Handler before = g_child_signal_handler.load(std::memory_order_acquire);
  // A vfork child changes its own disposition (Python's resets each handler), not the parent's.
  const bool is_own = !IsBorrowedMemory();
  struct sigaction ours {};
  struct sigaction was {};
  Handler handler = nullptr;
  if (action != nullptr) {
    ours = *action;
    if (is_own && IsPlainHandler(*action)) {
      handler = action->sa_handler;
      ours.sa_flags |= SA_SIGINFO;
      ours.sa_sigaction = &OnChildSignal;
      g_child_signal_handler.store(handler, std::memory_order_release);
    }
  }
  const int result = real_sigaction(SIGCHLD, action == nullptr ? nullptr : &ours, &was);
  if (is_own && action != nullptr)
    g_child_signal_handler.store(result == 0 ? handler : before, std::memory_order_release);
  if (result == 0 && old != nullptr) {
    *old = was;
    if (IsOurs(was)) {
      old->sa_flags &= ~SA_SIGINFO;
      old->sa_handler = before;
    }
  }
  return result;
}

}  // namespace deja::preload
