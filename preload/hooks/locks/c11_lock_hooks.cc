// Locks of C11's <threads.h>, which the C library makes of those of pthreads without their hooks.
#include <threads.h>
#include <time.h>

#include "preload/hooks/clock/deadline.h"
#include "preload/hooks/export.h"
#include "preload/hooks/locks/lock_call.h"
#include "preload/hooks/locks/once_call.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {

constinit thread_local OnceFrame* t_once __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constinit RealFn<int (*)(mtx_t*)> real_mtx_lock{"mtx_lock"};
constinit RealFn<int (*)(mtx_t*)> real_mtx_trylock{"mtx_trylock"};
constinit RealFn<int (*)(mtx_t*)> real_mtx_unlock{"mtx_unlock"};
constinit RealFn<int (*)(mtx_t*, const timespec*)> real_mtx_timedlock{"mtx_timedlock"};
constinit RealFn<int (*)(cnd_t*, mtx_t*)> real_cnd_wait{"cnd_wait"};
constinit RealFn<int (*)(cnd_t*, mtx_t*, const timespec*)> real_cnd_timedwait{"cnd_timedwait"};
constinit RealFn<void (*)(once_flag*, void (*)())> real_call_once{"call_once"};

// As those of pthreads.
__attribute__((constructor)) void FindRealC11Locks() {
  const auto find = [](auto&... real) { ((void)real.Get(), ...); };
  find(real_mtx_lock, real_mtx_trylock, real_mtx_unlock, real_mtx_timedlock, real_cnd_wait,
       real_cnd_timedwait, real_call_once);
}

template <typename Real>
int TakeC11Mutex(mtx_t* mutex, const Real& real) {
  return TakeLock(format::LockUse::kMutex, mutex, real, [=] { return real_mtx_lock(mutex); });
}

template <typename Real>
int AwaitC11(mtx_t* mutex, const Real& real) {
  return AwaitCondition(
      mutex, thrd_timedout, real, [=] { return real_mtx_lock(mutex); },
      [=] { return real_mtx_unlock(mutex); });
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int mtx_lock(mtx_t* mutex) {
  return TakeC11Mutex(mutex, [=] { return real_mtx_lock(mutex); });
}

DEJA_EXPORT int mtx_trylock(mtx_t* mutex) {
  return TakeC11Mutex(mutex, [=] { return real_mtx_trylock(mutex); });
}

DEJA_EXPORT int mtx_timedlock(mtx_t* __restrict mutex, const timespec* __restrict deadline) {
  const LiveDeadline live(deadline, CLOCK_REALTIME);
  return TakeC11Mutex(mutex, [&] { return real_mtx_timedlock(mutex, live.get()); });
}

DEJA_EXPORT int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return AwaitC11(mutex, [=] { return real_cnd_wait(condition, mutex); });
}

DEJA_EXPORT int cnd_timedwait(cnd_t* __restrict condition, mtx_t* __restrict mutex,
                              const timespec* __restrict deadline) {
  const LiveDeadline live(deadline, CLOCK_REALTIME);
  return AwaitC11(mutex, [&] { return real_cnd_timedwait(condition, mutex, live.get()); });
}

DEJA_EXPORT void call_once(once_flag* flag, void (*routine)(void)) {
  RunOnce(flag, routine, [=](void (*begun)()) {
    real_call_once(flag, begun);
    return 0;
  });
}
