// SpinLock: a lock for the few slow paths inside the user's process.
//
// Held briefly and never across a real call. No allocation, no dependence on pthread (which is
// hooked). A thread knows whether it holds one (TryLock from a signal handler on the holder fails
// instead of hanging). Hold: locked for the time of a scope; not for signal handlers.
//
// A process may fork while another of its threads holds a lock. That thread is not in the child, so
// there the lock is free. What it guards is as that thread left it. So each guarded step leaves
// what a child can use, or the child makes it again.
#ifndef DEJA_COMMON_RUNTIME_SPIN_LOCK_H_
#define DEJA_COMMON_RUNTIME_SPIN_LOCK_H_

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace deja {

// How often this process and its parents have forked, from 1 on. Locks of earlier numbers are free.
inline constinit std::atomic<uint32_t> g_forks{1};

class SpinLock {
 public:
  // Spins, then yields the processor, until the lock is free.
  void Lock() {
    for (int spins = 0; !TryLock(); ++spins) {
      if (spins >= 64) sched_yield();
    }
  }
  bool TryLock() {
    const uint32_t own = g_forks.load(std::memory_order_relaxed);
    uint32_t seen = taken_in_.load(std::memory_order_relaxed);
    return seen != own && taken_in_.compare_exchange_strong(seen, own, std::memory_order_acquire,
                                                            std::memory_order_relaxed);
  }
  // For signal handlers: gives up after about a millisecond, since this thread may be the holder.
  bool LockBriefly() {
    for (int spins = 0; spins < 2000; ++spins) {
      if (TryLock()) return true;
      sched_yield();
    }
    return false;
  }
  void Unlock() { taken_in_.store(0, std::memory_order_release); }

 private:
  std::atomic<uint32_t> taken_in_{0};  // g_forks of the process that has it; 0: it is free
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
