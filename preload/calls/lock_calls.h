// LockCalls: what an engine does with locks of the program, while they are ordered
// (preload/meet/lock_order.h).
//
// Any thread, without the guard. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_LOCK_CALLS_H_
#define DEJA_PRELOAD_CALLS_LOCK_CALLS_H_

#include "format/tail/lock_reading.h"

namespace deja::preload {

// A call by which a thread of the program takes a lock or waits for another thread (lock_order.h).
// Results are as the call returns them; those of semaphores are 0 or an errno.
struct LockCall {
  format::LockUse use = format::LockUse::kMutex;
  const void* lock = nullptr;  // whose turn it is; of a condition variable's wait, the mutex
  int timed_out = 0;           // what a wait for a condition variable returns when its time is over
  bool runs = false;           // a routine that runs once: it has begun on this thread
  int result = 0;
  // The call as the program made it: sets `result`.
  void (*real)(LockCall& call) = nullptr;
  // Takes the lock, however long that lasts: sets `result`.
  void (*take)(LockCall& call) = nullptr;
  // Before a condition variable's wait: gives the mutex back.
  void (*give_back)(LockCall& call) = nullptr;
};

// The text of the note by which a recording says that OrdersLoops was true.
inline constexpr char kLoopsAreOrdered[] = "python/loops-are-ordered";

class LockCalls {
 public:
  // While locks are ordered. Programs' exceptions pass through it.
  virtual void OnLock(LockCall& call) { call.real(call); }
  // Within OnLock: the calling thread is the one that runs the routine, and is about to.
  virtual void OnOnceBegins(LockCall& call) { call.runs = true; }

  // The threads of this process, which has one yet, meet at locks: their order counts, whether it
  // was asked for or not.
  virtual void OnThreadsMeet() {}
  // asyncio's loops of this process take the ends of commands, which threads hand over, by a
  // semaphore whose order is recorded. In a replay: if the recorded ones did.
  virtual bool OrdersLoops() { return false; }

 protected:
  ~LockCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_LOCK_CALLS_H_
