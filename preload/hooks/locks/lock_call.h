// What the hooks of locks share: who is asked, and how a call is handed over.
//
// Hooks of locks are called by allocators, so nothing here allocates; a condition variable's wait
// may be left by cancellation, so nothing here has a destructor.
#ifndef DEJA_PRELOAD_HOOKS_LOCKS_LOCK_CALL_H_
#define DEJA_PRELOAD_HOOKS_LOCKS_LOCK_CALL_H_

#include <cerrno>

#include "preload/calls/lock_calls.h"
#include "preload/engine/engine.h"
#include "preload/meet/any_order.h"
#include "preload/meet/lock_order.h"
#include "preload/process/guard.h"

namespace deja::preload {

// The engine, if this lock of the program's has an order; else null.
inline Engine* EngineForLock(const void* lock, format::LockUse use) {
  if (!LocksAreOrdered() || InsideDeja() || t_in_any_order) [[likely]]
    return nullptr;
  Engine* engine = GetEngine();
  // A forked child, with one thread, has none.
  if (engine == nullptr || !LocksAreOrdered() || !IsOrderedLock(lock, use)) return nullptr;
  return engine;
}

// A call that is made by `Real()`, and takes the lock for sure by `Take()`; both return what the
// program gets.
template <typename Real, typename Take>
struct LockCallOf : LockCall {
  // Borrows both functions for the time of the call.
  LockCallOf(format::LockUse used, const void* taken, const Real& r, const Take& t)
      : make_real(r), make_take(t) {
    use = used;
    lock = taken;
    real = [](LockCall& call) { call.result = static_cast<LockCallOf&>(call).make_real(); };
    take = [](LockCall& call) { call.result = static_cast<LockCallOf&>(call).make_take(); };
  }
  const Real& make_real;
  const Take& make_take;
};

// Takes `lock` through the engine, or by `real` if the lock has no order. Returns what the program
// gets.
template <typename Real, typename Take>
inline int TakeLock(format::LockUse use, const void* lock, const Real& real, const Take& take) {
  Engine* engine = EngineForLock(lock, use);
  if (engine == nullptr) return real();
  LockCallOf call(use, lock, real, take);
  engine->locks->OnLock(call);
  return call.result;
}

// A call that waits as long as it lasts.
template <typename Real>
inline int TakeLock(format::LockUse use, const void* lock, const Real& real) {
  return TakeLock(use, lock, real, real);
}

// A wait for a condition variable; `give_back` and `take` are of its mutex.
template <typename Real, typename Take, typename GiveBack>
inline int AwaitCondition(const void* mutex, int timed_out, const Real& real, const Take& take,
                          const GiveBack& give_back) {
  Engine* engine = EngineForLock(mutex, format::LockUse::kCondition);
  if (engine == nullptr) return real();
  struct Call : LockCallOf<Real, Take> {
    Call(const void* taken, const Real& r, const Take& t, const GiveBack& g)
        : LockCallOf<Real, Take>(format::LockUse::kCondition, taken, r, t), make_give_back(g) {
      this->give_back = [](LockCall& c) { static_cast<Call&>(c).make_give_back(); };
    }
    const GiveBack& make_give_back;
  };
  Call call(mutex, real, take, give_back);
  call.timed_out = timed_out;
  engine->locks->OnLock(call);
  return call.result;
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_LOCKS_LOCK_CALL_H_
