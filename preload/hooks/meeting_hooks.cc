// Calls by which processes of a rank meet: semaphores with names, and waiting for pipes and
// socketpairs of their own. Which of them comes first is an input of the program.
//
// Other semaphores are locks of the process's threads (lock_call.h); other descriptors cost a
// comparison.
#include <poll.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>

#include "preload/hooks/deadline.h"
#include "preload/hooks/export.h"
#include "preload/hooks/fd_table.h"
#include "preload/hooks/input.h"
#include "preload/hooks/lock_call.h"
#include "preload/process_name.h"
#include "preload/real_symbols.h"
#include "preload/shared_semaphores.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(sem_t*)> real_sem_wait{"sem_wait"};
constinit RealFn<int (*)(sem_t*)> real_sem_trywait{"sem_trywait"};
constinit RealFn<int (*)(sem_t*, const timespec*)> real_sem_timedwait{"sem_timedwait"};
constinit RealFn<int (*)(sem_t*, clockid_t, const timespec*)> real_sem_clockwait{"sem_clockwait"};
constinit RealFn<int (*)(sem_t*, int*)> real_sem_getvalue{"sem_getvalue"};
constinit RealFn<int (*)(pollfd*, nfds_t, int)> real_poll{"poll"};
constinit RealFn<int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*)> real_ppoll{"ppoll"};

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
  engine->OnAcquire(call);
  errno = call.result != 0 ? call.error : saved_errno;
  return call.result;
}

// Only processes of the rank have it, and Deja does not answer for it.
bool IsOwnPipe(int fd) {
  if (fd < 3 || FdTable::Find(fd) != nullptr) return false;
  struct stat st;
  return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) &&
         !CameFromOutside(st.st_ino);
}

constexpr nfds_t kMostPolled = 64;

bool AreOwnPipes(const pollfd* descriptors, nfds_t count) {
  if (descriptors == nullptr || count == 0 || count > kMostPolled) return false;
  const int saved_errno = errno;
  const Guard guard;
  bool own = true;
  for (nfds_t i = 0; own && i < count; ++i) own = IsOwnPipe(descriptors[i].fd);
  errno = saved_errno;
  return own;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int sem_wait(sem_t* semaphore) {
  return Acquire(semaphore, false, [=] { return real_sem_wait(semaphore); });
}

DEJA_EXPORT int sem_trywait(sem_t* semaphore) noexcept {
  return Acquire(semaphore, true, [=] { return real_sem_trywait(semaphore); });
}

DEJA_EXPORT int sem_timedwait(sem_t* __restrict semaphore, const timespec* __restrict deadline) {
  LiveDeadline live(deadline, CLOCK_REALTIME);
  const timespec* until = live.get();
  return Acquire(semaphore, false, [=] { return real_sem_timedwait(semaphore, until); });
}

DEJA_EXPORT int sem_clockwait(sem_t* __restrict semaphore, clockid_t clock,
                              const timespec* __restrict deadline) {
  LiveDeadline live(deadline, clock);
  const timespec* until = live.get();
  return Acquire(semaphore, false, [=] { return real_sem_clockwait(semaphore, clock, until); });
}

DEJA_EXPORT int sem_getvalue(sem_t* __restrict semaphore, int* __restrict value) noexcept {
  const SharedSemaphores::Found found = SharedSemaphores::Find(semaphore);
  Engine* engine = found.key == 0 ? nullptr : EngineForHook();
  if (engine == nullptr) return real_sem_getvalue(semaphore, value);
  return static_cast<int>(
      TakeInput(*engine, LibcApi::ksem_getvalue, found.key, BytesOf(value), [=](InputCall& call) {
        call.result = real_sem_getvalue(semaphore, value);
        call.produced = sizeof *value;
      }));
}

DEJA_EXPORT int poll(pollfd* descriptors, nfds_t count, int timeout_ms) {
  Engine* engine = EngineForHook();
  if (engine == nullptr || !AreOwnPipes(descriptors, count))
    return real_poll(descriptors, count, timeout_ms);
  PollCall call{.descriptors = descriptors, .count = count, .timeout_ms = timeout_ms};
  call.real = [](PollCall& c, void*) {
    c.result = real_poll(c.descriptors, c.count, c.timeout_ms);
  };
  engine->OnPoll(call);
  return call.result;
}

DEJA_EXPORT int __poll_chk(pollfd* descriptors, nfds_t count, int timeout_ms, size_t size) {
  if (size / sizeof *descriptors < count) __builtin_trap();
  return poll(descriptors, count, timeout_ms);
}

DEJA_EXPORT int ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout,
                      const sigset_t* mask) {
  Engine* engine = EngineForHook();
  if (engine == nullptr || !AreOwnPipes(descriptors, count))
    return real_ppoll(descriptors, count, timeout, mask);
  constexpr int64_t kMost = 1 << 30;
  int timeout_ms = -1;
  if (timeout != nullptr && timeout->tv_sec < kMost / 1000)
    timeout_ms = static_cast<int>(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000);
  PollCall call{.descriptors = descriptors, .count = count, .timeout_ms = timeout_ms};
  call.context = const_cast<sigset_t*>(mask);
  call.real = [](PollCall& c, void* context) {
    const timespec wait{c.timeout_ms / 1000, c.timeout_ms % 1000 * 1000000L};
    c.result = real_ppoll(c.descriptors, c.count, c.timeout_ms < 0 ? nullptr : &wait,
                          static_cast<const sigset_t*>(context));
  };
  engine->OnPoll(call);
  return call.result;
}
