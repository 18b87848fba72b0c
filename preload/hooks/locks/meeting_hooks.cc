// Semaphores that processes of a rank share (shared_semaphores.h): which of them takes one first is
// an input of the program. Others are locks of the process's threads (lock_call.h).
#include <semaphore.h>
#include <time.h>

#include <cerrno>

#include "preload/calls/input_calls.h"
#include "preload/calls/meeting_calls.h"
#include "preload/hooks/child_signal_places.h"
#include "preload/hooks/clock/deadline.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/hooks/locks/lock_call.h"
#include "preload/meet/meeting_key.h"
#include "preload/meet/shared_semaphores.h"
#include "preload/symbols/python_locks.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(sem_t*)> real_sem_wait{"sem_wait"};
constinit RealFn<int (*)(sem_t*)> real_sem_trywait{"sem_trywait"};
constinit RealFn<int (*)(sem_t*, const timespec*)> real_sem_timedwait{"sem_timedwait"};
constinit RealFn<int (*)(sem_t*, clockid_t, const timespec*)> real_sem_clockwait{"sem_clockwait"};
constinit RealFn<int (*)(sem_t*, int*)> real_sem_getvalue{"sem_getvalue"};
constinit RealFn<int (*)(sem_t*, int, unsigned)> real_sem_init{"sem_init"};
constinit RealFn<int (*)(sem_t*)> real_sem_post{"sem_post"};

// The program does not see the reading of a lock of Python's.
void TellLockOfPython(const void* caller, const void* frame) {
  if (TakeReadingOfPythonLock(caller, frame) && !t_reading_is_live) [[unlikely]]
    TellUnseenReading(CLOCK_MONOTONIC, UnseenReading::kPythonLock);
}

template <typename Real>
int TakeSemaphore(sem_t* semaphore, const Real& real) {
  const int saved_errno = errno;
  const int error = TakeLock(
      format::LockUse::kSemaphore, semaphore, [&] { return real() == 0 ? 0 : errno; },
      [=] {
        while (real_sem_wait(semaphore) != 0)
          if (errno != EINTR) return errno;
        return 0;
      });
  errno = error != 0 ? error : saved_errno;
  return error != 0 ? -1 : 0;
}

// `real()` makes the call.
template <typename Real>
int Acquire(sem_t* semaphore, bool tries, Real real) {
  const SharedSemaphores::Found found = SharedSemaphores::Find(semaphore);
  if (found.key == 0) return TakeSemaphore(semaphore, real);
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real();
  AcquireCall call{.key = found.key, .semaphore = semaphore, .order = found.order, .tries = tries};
  call.context = &real;
  call.real = [](AcquireCall& c, void* context) {
    c.result = (*static_cast<Real*>(context))();
    c.error = c.result != 0 ? errno : 0;
  };
  const int saved_errno = errno;
  {
    const MeetingCall meeting;
    engine->meetings->OnAcquire(call);
  }
  errno = call.result != 0 ? call.error : saved_errno;
  if (call.result == 0) SharedSemaphores::SetGuarded(true);
  return call.result;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int sem_wait(sem_t* semaphore) {
  TellLockOfPython(__builtin_return_address(0), __builtin_dwarf_cfa());
  return Acquire(semaphore, false, [=] { return real_sem_wait(semaphore); });
}

DEJA_EXPORT int sem_trywait(sem_t* semaphore) noexcept {
  TellLockOfPython(__builtin_return_address(0), __builtin_dwarf_cfa());
  return Acquire(semaphore, true, [=] { return real_sem_trywait(semaphore); });
}

DEJA_EXPORT int sem_timedwait(sem_t* __restrict semaphore, const timespec* __restrict deadline) {
  LiveDeadline live(deadline, CLOCK_REALTIME);
  const timespec* until = live.get();
  return Acquire(semaphore, false, [=] { return real_sem_timedwait(semaphore, until); });
}

DEJA_EXPORT int sem_clockwait(sem_t* __restrict semaphore, clockid_t clock,
                              const timespec* __restrict deadline) {
  // Before the deadline, for which the engine may read the clock.
  const bool is_of_python =
      TakeReadingOfPythonLock(__builtin_return_address(0), __builtin_dwarf_cfa());
  const bool is_live = is_of_python && t_reading_is_live;
  LiveDeadline live(is_live ? nullptr : deadline, clock);
  if (is_of_python && !is_live) TellUnseenReading(clock, UnseenReading::kPythonLock);
  const timespec* until = is_live ? deadline : live.get();
  return Acquire(semaphore, false, [=] { return real_sem_clockwait(semaphore, clock, until); });
}

DEJA_EXPORT int sem_getvalue(sem_t* __restrict semaphore, int* __restrict value) noexcept {
  const SharedSemaphores::Found found = SharedSemaphores::Find(semaphore);
  Engine* engine = found.key == 0 ? nullptr : EngineForHook();
  if (engine == nullptr) return real_sem_getvalue(semaphore, value);
  return static_cast<int>(TakeInput(*engine, deja::api::LibcApi::ksem_getvalue, found.key,
                                    BytesOf(value), [=](InputCall& call) {
                                      call.result = real_sem_getvalue(semaphore, value);
                                      call.produced = sizeof *value;
                                    }));
}

DEJA_EXPORT int sem_init(sem_t* semaphore, int shared, unsigned value) noexcept {
  const int result = real_sem_init(semaphore, shared, value);
  if (result != 0 || shared == 0 || EngineForHook() == nullptr || IsBorrowedMemory()) return result;
  const Guard guard;
  SharedSemaphores::Mark(semaphore, NewMeetingKey());
  return result;
}

DEJA_EXPORT int sem_post(sem_t* semaphore) noexcept {
  if (SharedSemaphores::GuardsThisThread() && SharedSemaphores::Find(semaphore).key != 0)
    SharedSemaphores::SetGuarded(false);
  return real_sem_post(semaphore);
}
