// What the hooks of mutexes, condition variables and reader-writer locks share for those locks that
// several processes have (shared_mutexes.h, shared_rwlocks.h).
//
// As in lock_call.h nothing here allocates or has a destructor.
#ifndef DEJA_PRELOAD_HOOKS_LOCKS_SHARED_MUTEX_CALL_H_
#define DEJA_PRELOAD_HOOKS_LOCKS_SHARED_MUTEX_CALL_H_

#include <pthread.h>

#include <cerrno>
#include <cstdint>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/meeting_calls.h"
#include "preload/engine/engine.h"
#include "preload/hooks/input.h"
#include "preload/meet/robust_mutexes.h"
#include "preload/meet/shared_mutexes.h"

namespace deja::preload {

enum class MutexUse : uint8_t {
  kLock,
  kAttempt,  // pthread_mutex_trylock
  kWait,     // for a condition variable, which gives the mutex back meanwhile
};

// The table of the rank's processes; null: there is none, or the call is not the program's.
inline PipeTable* TableOfMutexes() {
  Engine* engine = IsBorrowedMemory() ? nullptr : EngineForHook();
  if (engine == nullptr) return nullptr;
  const Guard guard;
  return engine->meetings->Pipes();
}

// The order of the mutex, robust or not; its key is 0 if processes do not share it.
inline SharedMutexes::Found FindSharedMutex(const pthread_mutex_t* mutex) {
  const auto found = SharedMutexes::Find(mutex);
  if (found.key != 0 || !RobustMutexes::IsMarked(mutex)) [[likely]]
    return found;
  PipeTable* table = TableOfMutexes();
  return table == nullptr ? found : RobustMutexes::Find(mutex, *table);
}

// `real()` makes the call, and returns what the program gets.
template <typename Real>
int AcquireMutex(pthread_mutex_t* mutex, const SharedMutexes::Found& found, MutexUse use,
                 const Real& real) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real();
  AcquireCall call;
  call.key = found.key;
  call.mutex = mutex;
  call.order = found.order;
  call.tries = use == MutexUse::kAttempt;
  call.gives_back = use == MutexUse::kWait;
  call.context = const_cast<Real*>(&real);
  call.real = [](AcquireCall& c, void* context) {
    c.error = (*static_cast<const Real*>(context))();
    // A wait whose time was over ends with the mutex, too.
    const bool is_taken =
        c.error == 0 || c.error == EOWNERDEAD || (c.gives_back && c.error == ETIMEDOUT);
    c.result = is_taken ? 0 : -1;
  };
  const ErrnoKeeper keep;
  engine->meetings->OnAcquire(call);
  return call.error;
}

// The same for a lock that is taken by the call itself, and by nothing else.
template <typename Real>
int AcquireShared(const SharedSemaphores::Found& found, bool tries, const Real& real) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real();
  AcquireCall call;
  call.key = found.key;
  call.order = found.order;
  call.tries = tries;
  call.context = const_cast<Real*>(&real);
  call.real = [](AcquireCall& c, void* context) {
    c.error = (*static_cast<const Real*>(context))();
    c.result = c.error == 0 ? 0 : -1;
  };
  const ErrnoKeeper keep;
  engine->meetings->OnAcquire(call);
  return call.error;
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_LOCKS_SHARED_MUTEX_CALL_H_
