// Sleeping and waking on a word, a mutex made of it, and a scope in which no signal arrives.
//
// For the parts that live in the user's process: nothing here goes through functions of libpthread
// that a program, a sanitizer or Deja itself may have put hooks on. Any thread; the mutex is not
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

namespace deja::format {

// Sleeps while `word` is `expected`, at most `timeout_ms`. May return early.
inline void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t timeout_ms) {
  const int saved = errno;
  const timespec timeout = {static_cast<time_t>(timeout_ms / 1000),
                            static_cast<long>(timeout_ms % 1000) * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
  errno = saved;
}

inline void FutexWake(std::atomic<uint32_t>& word, int threads) {
  const int saved = errno;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
  errno = saved;
}

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
  std::atomic<uint32_t> word_{0};  // 0 free, 1 held, 2 held and somebody sleeps
};

// Blocks all signals of this thread. A write beyond RLIMIT_FSIZE sends SIGXFSZ to the thread that
// writes; one that came up in this scope is taken away, because the program did not cause it.
class ScopedSignalBlock {
 public:
  ScopedSignalBlock() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved_);
    had_xfsz_ = XfszPending();
  }
  ~ScopedSignalBlock() {
    const int saved_errno = errno;
    if (!had_xfsz_ && XfszPending()) {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGXFSZ);
      const timespec now = {0, 0};
      (void)sigtimedwait(&set, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &saved_, nullptr);
    errno = saved_errno;
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

inline uint64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace deja::format

#endif  // DEJA_COMMON_RUNTIME_FUTEX_H_
