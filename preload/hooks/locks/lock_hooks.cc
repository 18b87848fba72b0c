// Locks of pthreads: which thread of the program takes which lock in which order is an input of it.
// C11's are in c11_lock_hooks.cc, semaphores in meeting_hooks.cc. Mutexes and reader-writer locks
// that processes share have their order with and without that of threads (shared_mutex_call.h).
//
// Where no order is kept a hook costs two loads and a jump. Deadlines are times by clocks that a
// replay serves (deadline.h).
#include <pthread.h>
#include <time.h>

#include <atomic>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/life_calls.h"
#include "preload/hooks/child_signal_places.h"
#include "preload/hooks/clock/deadline.h"
#include "preload/hooks/export.h"
#include "preload/hooks/locks/lock_call.h"
#include "preload/hooks/locks/once_call.h"
#include "preload/hooks/locks/shared_mutex_call.h"
#include "preload/meet/meeting_key.h"
#include "preload/meet/python_runtime.h"
#include "preload/meet/shared_rwlocks.h"
#include "preload/symbols/python_locks.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

using format::LockUse;

constinit RealFn<int (*)(pthread_mutex_t*, const pthread_mutexattr_t*)> real_pthread_mutex_init{
    "pthread_mutex_init"};
constinit RealFn<int (*)(pthread_rwlock_t*, const pthread_rwlockattr_t*)> real_pthread_rwlock_init{
    "pthread_rwlock_init"};
constinit RealFn<int (*)(pthread_mutex_t*)> real_pthread_mutex_lock{"pthread_mutex_lock"};
constinit RealFn<int (*)(pthread_mutex_t*)> real_pthread_mutex_trylock{"pthread_mutex_trylock"};
constinit RealFn<int (*)(pthread_mutex_t*)> real_pthread_mutex_unlock{"pthread_mutex_unlock"};
constinit RealFn<int (*)(pthread_mutex_t*, const timespec*)> real_pthread_mutex_timedlock{
    "pthread_mutex_timedlock"};
constinit RealFn<int (*)(pthread_mutex_t*, clockid_t, const timespec*)>
    real_pthread_mutex_clocklock{"pthread_mutex_clocklock"};
constinit RealFn<int (*)(pthread_cond_t*, pthread_mutex_t*)> real_pthread_cond_wait{
    "pthread_cond_wait"};
constinit RealFn<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)>
    real_pthread_cond_timedwait{"pthread_cond_timedwait"};
constinit RealFn<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>
    real_pthread_cond_clockwait{"pthread_cond_clockwait"};
constinit RealFn<int (*)(pthread_rwlock_t*)> real_pthread_rwlock_rdlock{"pthread_rwlock_rdlock"};
constinit RealFn<int (*)(pthread_rwlock_t*)> real_pthread_rwlock_wrlock{"pthread_rwlock_wrlock"};
constinit RealFn<int (*)(pthread_rwlock_t*)> real_pthread_rwlock_tryrdlock{
    "pthread_rwlock_tryrdlock"};
constinit RealFn<int (*)(pthread_rwlock_t*)> real_pthread_rwlock_trywrlock{
    "pthread_rwlock_trywrlock"};
constinit RealFn<int (*)(pthread_rwlock_t*, const timespec*)> real_pthread_rwlock_timedrdlock{
    "pthread_rwlock_timedrdlock"};
constinit RealFn<int (*)(pthread_rwlock_t*, const timespec*)> real_pthread_rwlock_timedwrlock{
    "pthread_rwlock_timedwrlock"};
constinit RealFn<int (*)(pthread_rwlock_t*, clockid_t, const timespec*)>
    real_pthread_rwlock_clockrdlock{"pthread_rwlock_clockrdlock"};
constinit RealFn<int (*)(pthread_rwlock_t*, clockid_t, const timespec*)>
    real_pthread_rwlock_clockwrlock{"pthread_rwlock_clockwrlock"};
constinit RealFn<int (*)(pthread_spinlock_t*)> real_pthread_spin_lock{"pthread_spin_lock"};
constinit RealFn<int (*)(pthread_spinlock_t*)> real_pthread_spin_trylock{"pthread_spin_trylock"};
constinit RealFn<int (*)(pthread_barrier_t*)> real_pthread_barrier_wait{"pthread_barrier_wait"};
constinit RealFn<int (*)(pthread_once_t*, void (*)())> real_pthread_once{"pthread_once"};

// A condition variable may have been told to use the monotonic clock (pthread_condattr_setclock);
// glibc keeps that in this bit.
clockid_t ClockOf(const pthread_cond_t* condition) {
  constexpr unsigned kMonotonic = 2;
  return (condition->__data.__wrefs & kMonotonic) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

template <typename Real>
int TakeMutex(pthread_mutex_t* mutex, MutexUse use, const Real& real) {
  if (const auto found = FindSharedMutex(mutex); found.key != 0) [[unlikely]]
    return AcquireMutex(mutex, found, use, real);
  return TakeLock(LockUse::kMutex, mutex, real, [=] { return real_pthread_mutex_lock(mutex); });
}

// Said where a recording ends.
void SayHasNoOrder(const char* what) {
  Engine* engine = EngineForHook();
  if (engine == nullptr || IsBorrowedMemory()) return;
  const Guard guard;
  engine->life->OnNotRecorded(what, true, "");
}

void MarkRobustMutex(pthread_mutex_t* mutex) {
  PipeTable* table = TableOfMutexes();
  if (table == nullptr) return;
  const bool has_order = [&] {
    const Guard guard;
    return RobustMutexes::Mark(mutex, NewMeetingKey(), *table);
  }();
  static constinit std::atomic<bool> said{false};
  if (!has_order && !said.exchange(true))
    SayHasNoOrder(
        "robust mutexes that processes share, beyond the first 4096: which process takes them "
        "first "
        "is not recorded, and a replay may do it in another order; a mutex that is not robust has "
        "its order");
}

void MarkSharedMutex(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  int shared = PTHREAD_PROCESS_PRIVATE;
  int robust = PTHREAD_MUTEX_STALLED;
  if (pthread_mutexattr_getpshared(attributes, &shared) != 0 || shared != PTHREAD_PROCESS_SHARED)
    return;
  pthread_mutexattr_getrobust(attributes, &robust);
  if (robust == PTHREAD_MUTEX_ROBUST) return MarkRobustMutex(mutex);
  if (EngineForHook() == nullptr || IsBorrowedMemory()) return;
  const Guard guard;
  SharedMutexes::Mark(mutex, NewMeetingKey());
}

template <typename Real>
int TakeToRead(pthread_rwlock_t* lock, bool tries, const Real& real) {
  if (const auto found = SharedRwlocks::Find(lock); found.key != 0) [[unlikely]]
    return AcquireShared(found, tries, real);
  return TakeLock(LockUse::kRead, lock, real, [=] { return real_pthread_rwlock_rdlock(lock); });
}

template <typename Real>
int TakeToWrite(pthread_rwlock_t* lock, bool tries, const Real& real) {
  if (const auto found = SharedRwlocks::Find(lock); found.key != 0) [[unlikely]]
    return AcquireShared(found, tries, real);
  return TakeLock(LockUse::kWrite, lock, real, [=] { return real_pthread_rwlock_wrlock(lock); });
}

// As glibc has it since 2.25; FUTEX_SHARED is a bit of the futex calls that it makes.
bool IsSharedBarrier(const pthread_barrier_t* barrier) {
  struct Inside {
    unsigned in;
    unsigned round;
    unsigned count;
    int shared;
  };
  constexpr int kShared = 128;
  return reinterpret_cast<const Inside*>(barrier)->shared == kShared;
}

// The process that leaves a barrier as the one that counts is an input. All of them wait for one
// another by themselves. The barrier may be gone by now.
int TellOfBarrier(int result) {
  constexpr uint64_t kAllBarriers = uint64_t{0xdea8} << 48;
  Engine* engine = EngineForHook();
  if (engine == nullptr) return result;
  AcquireCall call;
  call.key = kAllBarriers;
  call.gives_back = true;
  call.context = &result;
  call.real = [](AcquireCall& c, void* context) {
    c.result = -1;  // it takes nothing
    c.error = *static_cast<int*>(context);
  };
  const ErrnoKeeper keep;
  engine->meetings->OnAcquire(call);
  return call.error;
}

// A look-up of a name may wait for the loader's lock, whose holder may wait for a lock of this
// thread. So all are looked up before there are threads.
__attribute__((constructor)) void FindRealLocks() {
  const auto find = [](auto&... real) { ((void)real.Get(), ...); };
  find(real_pthread_mutex_init, real_pthread_rwlock_init);
  find(real_pthread_mutex_lock, real_pthread_mutex_trylock, real_pthread_mutex_unlock,
       real_pthread_mutex_timedlock, real_pthread_mutex_clocklock, real_pthread_cond_wait,
       real_pthread_cond_timedwait, real_pthread_cond_clockwait);
  find(real_pthread_rwlock_rdlock, real_pthread_rwlock_wrlock, real_pthread_rwlock_tryrdlock,
       real_pthread_rwlock_trywrlock, real_pthread_rwlock_timedrdlock,
       real_pthread_rwlock_timedwrlock, real_pthread_rwlock_clockrdlock,
       real_pthread_rwlock_clockwrlock);
  find(real_pthread_spin_lock, real_pthread_spin_trylock, real_pthread_barrier_wait,
       real_pthread_once);
}

template <typename Real>
int Await(pthread_mutex_t* mutex, const Real& real) {
  const DeafWait deaf;
  if (const auto found = FindSharedMutex(mutex); found.key != 0) [[unlikely]]
    return AcquireMutex(mutex, found, MutexUse::kWait, real);
  return AwaitCondition(
      mutex, ETIMEDOUT, real, [=] { return real_pthread_mutex_lock(mutex); },
      [=] { return real_pthread_mutex_unlock(mutex); });
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int pthread_mutex_init(pthread_mutex_t* mutex,
                                   const pthread_mutexattr_t* attributes) noexcept {
  const int result = real_pthread_mutex_init(mutex, attributes);
  if (result == 0 && attributes != nullptr) MarkSharedMutex(mutex, attributes);
  return result;
}

DEJA_EXPORT int pthread_rwlock_init(pthread_rwlock_t* __restrict lock,
                                    const pthread_rwlockattr_t* __restrict attributes) noexcept {
  const int result = real_pthread_rwlock_init(lock, attributes);
  int shared = PTHREAD_PROCESS_PRIVATE;
  if (result != 0 || attributes == nullptr ||
      pthread_rwlockattr_getpshared(attributes, &shared) != 0 || shared != PTHREAD_PROCESS_SHARED ||
      EngineForHook() == nullptr || IsBorrowedMemory())
    return result;
  const Guard guard;
  SharedRwlocks::Mark(lock, NewMeetingKey());
  return result;
}

DEJA_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  return TakeMutex(mutex, MutexUse::kLock, [=] { return real_pthread_mutex_lock(mutex); });
}

DEJA_EXPORT int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  return TakeMutex(mutex, MutexUse::kAttempt, [=] { return real_pthread_mutex_trylock(mutex); });
}

DEJA_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* __restrict mutex,
                                        const timespec* __restrict deadline) noexcept {
  const LiveDeadline live(deadline, CLOCK_REALTIME);
  return TakeMutex(mutex, MutexUse::kLock,
                   [&] { return real_pthread_mutex_timedlock(mutex, live.get()); });
}

DEJA_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* __restrict mutex, clockid_t clock,
                                        const timespec* __restrict deadline) noexcept {
  const LiveDeadline live(deadline, clock);
  return TakeMutex(mutex, MutexUse::kLock,
                   [&] { return real_pthread_mutex_clocklock(mutex, clock, live.get()); });
}

// The C library's own names for the first two, which older libraries use.
DEJA_EXPORT int __pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  return pthread_mutex_lock(mutex);
}

DEJA_EXPORT int __pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  return pthread_mutex_trylock(mutex);
}

DEJA_EXPORT int pthread_cond_wait(pthread_cond_t* __restrict condition,
                                  pthread_mutex_t* __restrict mutex) {
  return Await(mutex, [=] { return real_pthread_cond_wait(condition, mutex); });
}

DEJA_EXPORT int pthread_cond_timedwait(pthread_cond_t* __restrict condition,
                                       pthread_mutex_t* __restrict mutex,
                                       const timespec* __restrict deadline) {
  const bool is_of_python = IsInPythonRuntime(condition);
  const bool is_live = is_of_python && t_reading_is_live;
  const LiveDeadline live(is_live ? nullptr : deadline, ClockOf(condition));
  if (is_of_python && !is_live) [[unlikely]]
    TellUnseenReading(ClockOf(condition), UnseenReading::kInterpreterWait);
  return Await(mutex, [&] {
    return real_pthread_cond_timedwait(condition, mutex, is_live ? deadline : live.get());
  });
}

DEJA_EXPORT int pthread_cond_clockwait(pthread_cond_t* __restrict condition,
                                       pthread_mutex_t* __restrict mutex, clockid_t clock,
                                       const timespec* __restrict deadline) {
  const LiveDeadline live(deadline, clock);
  return Await(mutex,
               [&] { return real_pthread_cond_clockwait(condition, mutex, clock, live.get()); });
}

DEJA_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  return TakeToRead(lock, false, [=] { return real_pthread_rwlock_rdlock(lock); });
}

DEJA_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  return TakeToRead(lock, true, [=] { return real_pthread_rwlock_tryrdlock(lock); });
}

DEJA_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* __restrict lock,
                                           const timespec* __restrict deadline) noexcept {
  const LiveDeadline live(deadline, CLOCK_REALTIME);
  return TakeToRead(lock, false, [&] { return real_pthread_rwlock_timedrdlock(lock, live.get()); });
}

DEJA_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* __restrict lock, clockid_t clock,
                                           const timespec* __restrict deadline) noexcept {
  const LiveDeadline live(deadline, clock);
  return TakeToRead(lock, false,
                    [&] { return real_pthread_rwlock_clockrdlock(lock, clock, live.get()); });
}

DEJA_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  return TakeToWrite(lock, false, [=] { return real_pthread_rwlock_wrlock(lock); });
}

DEJA_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  return TakeToWrite(lock, true, [=] { return real_pthread_rwlock_trywrlock(lock); });
}

DEJA_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* __restrict lock,
                                           const timespec* __restrict deadline) noexcept {
  const LiveDeadline live(deadline, CLOCK_REALTIME);
  return TakeToWrite(lock, false,
                     [&] { return real_pthread_rwlock_timedwrlock(lock, live.get()); });
}

DEJA_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* __restrict lock, clockid_t clock,
                                           const timespec* __restrict deadline) noexcept {
  const LiveDeadline live(deadline, clock);
  return TakeToWrite(lock, false,
                     [&] { return real_pthread_rwlock_clockwrlock(lock, clock, live.get()); });
}

DEJA_EXPORT int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  return TakeLock(LockUse::kSpin, const_cast<const int*>(lock),
                  [=] { return real_pthread_spin_lock(lock); });
}

DEJA_EXPORT int pthread_spin_trylock(pthread_spinlock_t* lock) noexcept {
  return TakeLock(
      LockUse::kSpin, const_cast<const int*>(lock), [=] { return real_pthread_spin_trylock(lock); },
      [=] { return real_pthread_spin_lock(lock); });
}

DEJA_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  if (IsSharedBarrier(barrier)) [[unlikely]]
    return TellOfBarrier(real_pthread_barrier_wait(barrier));
  return TakeLock(LockUse::kBarrier, barrier, [=] { return real_pthread_barrier_wait(barrier); });
}

DEJA_EXPORT int pthread_once(pthread_once_t* control, void (*routine)()) {
  return RunOnce(control, routine,
                 [=](void (*begun)()) { return real_pthread_once(control, begun); });
}

DEJA_EXPORT int __pthread_once(pthread_once_t* control, void (*routine)()) {
  return pthread_once(control, routine);
}
