// SpinLock: a lock for the few slow paths inside the user's process.
//
// Held briefly and never across a real call. No allocation, no dependence on pthread (which is
// hooked). A thread knows whether it holds one (TryLock from a signal handler on the holder fails
// instead of hanging). Reset() is for fork children only. Hold: locked for the time of a scope; not
// for signal handlers.
#ifndef DEJA_COMMON_RUNTIME_SPIN_LOCK_H_
#define DEJA_COMMON_RUNTIME_SPIN_LOCK_H_

#include <sched.h>

#include <atomic>

namespace deja {

class SpinLock {
 public:
  // Spins, then yields the processor, until the lock is free.
  void Lock() {
    for (int spins = 0; !TryLock(); ++spins) {
      if (spins >= 64) sched_yield();
    }
  }
  bool TryLock() { return !locked_.exchange(true, std::memory_order_acquire); }
  // For signal handlers: gives up after about a millisecond, since this thread may be the holder.
  bool LockBriefly() {
    for (int spins = 0; spins < 2000; ++spins) {
      if (TryLock()) return true;
      sched_yield();
    }
    return false;
  }
  void Unlock() { locked_.store(false, std::memory_order_release); }
  void Reset() { locked_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> locked_{false};
};

class Hold {
 public:
  explicit Hold(SpinLock& lock) : lock_(lock) { lock_.Lock(); }
  ~Hold() { lock_.Unlock(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_SPIN_LOCK_H_
