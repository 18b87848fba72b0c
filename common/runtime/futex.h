// Sleeping and waking on a word, a mutex made of it, and a scope in which no signal arrives.
//
// For the parts that live in the user's process. Nothing here calls functions of libpthread, since
// a program, a sanitizer or Deja itself may have hooks on them. Any thread; the mutex is not
// recursive and not for signal handlers.
#ifndef DEJA_COMMON_RUNTIME_FUTEX_H_
#define DEJA_COMMON_RUNTIME_FUTEX_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>

#include "common/runtime/errno_keeper.h"

namespace deja {

// Which threads sleep on a word: those of this process, or of every process that has it mapped.
enum class FutexScope { kProcess, kShared };

// Sleeps while `word` is `expected`, at most `timeout_ns`. May return early. False: a signal of
// this thread ended it. No cancellation point. Leaves errno alone.
inline bool FutexWaitNs(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns,
                        FutexScope scope) {
  const ErrnoKeeper keep;
  const timespec timeout = {static_cast<time_t>(timeout_ns / 1000000000),
                            static_cast<long>(timeout_ns % 1000000000)};
  return syscall(SYS_futex, &word, scope == FutexScope::kShared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE,
                 expected, &timeout, nullptr, 0) == 0 ||
         errno != EINTR;
}

inline void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t timeout_ms,
                      FutexScope scope = FutexScope::kProcess) {
  FutexWaitNs(word, expected, uint64_t{timeout_ms} * 1000000, scope);
}

// Wakes up to `threads` of those that sleep. Leaves errno alone.
inline void FutexWake(std::atomic<uint32_t>& word, int threads,
                      FutexScope scope = FutexScope::kProcess) {
  const ErrnoKeeper keep;
  syscall(SYS_futex, &word, scope == FutexScope::kShared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, threads,
          nullptr, nullptr, 0);
}

// A mutex of one word. Any thread; not recursive, not for signal handlers. Has no errors.
class FutexMutex {
 public:
  void lock() {
    uint32_t state = 0;
    if (word_.compare_exchange_strong(state, 1, std::memory_order_acquire)) return;
    for (int spin = 0; spin < 64; ++spin) {
      state = 0;
      if (word_.compare_exchange_weak(state, 1, std::memory_order_acquire)) return;
    }
    while (word_.exchange(2, std::memory_order_acquire) != 0) FutexWait(word_, 2, 1000);
  }
  bool try_lock() {
    uint32_t state = 0;
    return word_.compare_exchange_strong(state, 1, std::memory_order_acquire);
  }
  void unlock() {
    if (word_.exchange(0, std::memory_order_release) == 2) FutexWake(word_, 1);
  }

 private:
  std::atomic<uint32_t> word_{0};  // 0 free, 1 held, 2 held and a thread sleeps
};

// Blocks all signals of this thread. A write beyond RLIMIT_FSIZE sends SIGXFSZ to the thread that
// writes; one that came up in this scope is taken away, because the program did not cause it.
class ScopedSignalBlock {
 public:
  // Blocks them; the destructor restores the thread's mask.
  ScopedSignalBlock() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved_);
    had_xfsz_ = XfszPending();
  }
  ~ScopedSignalBlock() {
    const ErrnoKeeper keep;
    if (!had_xfsz_ && XfszPending()) {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGXFSZ);
      const timespec now = {0, 0};
      (void)sigtimedwait(&set, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &saved_, nullptr);
  }
  ScopedSignalBlock(const ScopedSignalBlock&) = delete;
  ScopedSignalBlock& operator=(const ScopedSignalBlock&) = delete;

 private:
  static bool XfszPending() {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) == 1;
  }

  sigset_t saved_;
  bool had_xfsz_;
};

// Nanoseconds of CLOCK_MONOTONIC. Async-signal-safe.
inline uint64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_FUTEX_H_
