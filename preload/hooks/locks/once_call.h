// Routines that run once: pthread_once and C11's call_once.
//
// The routine may throw, which passes through the hook, or end its thread.
#ifndef DEJA_PRELOAD_HOOKS_LOCKS_ONCE_CALL_H_
#define DEJA_PRELOAD_HOOKS_LOCKS_ONCE_CALL_H_

#include "preload/calls/lock_calls.h"
#include "preload/hooks/locks/lock_call.h"

namespace deja::preload {

struct OnceFrame {
  Engine* engine = nullptr;
  LockCall* call = nullptr;
  void (*routine)() = nullptr;
};
// The frame of the call that is about to find out whether it runs its routine. Read before that
// runs, so what it calls may use it again.
extern constinit thread_local OnceFrame* t_once __attribute__((tls_model("initial-exec")));

// The routine that pthread_once gets: runs the program's, between the engine's two notes.
inline void RunRoutine() {
  const OnceFrame frame = *t_once;
  frame.engine->locks->OnOnceBegins(*frame.call);
  frame.routine();
}

// `real(routine)` makes the call with another routine.
template <typename Real>
int RunOnce(const void* control, void (*routine)(), const Real& real) {
  Engine* engine = EngineForLock(control, format::LockUse::kOnce);
  if (engine == nullptr) return real(routine);
  OnceFrame frame{engine, nullptr, routine};
  const auto make = [&] {
    t_once = &frame;
    return real(&RunRoutine);
  };
  LockCallOf call(format::LockUse::kOnce, control, make, make);
  frame.call = &call;
  engine->locks->OnLock(call);
  return call.result;
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_LOCKS_ONCE_CALL_H_
