// Readings of the monotonic clock that Python's locks make, and that the program does not see.
//
// Semaphores: in 3.11 to 3.13 threading.Lock makes one whenever a thread takes the lock or tries
// to, whether there is a deadline or not. A lock that another thread has is tried first and then
// waited for, so that it reads the clock twice.
// PyMutex: the small locks of 3.13, and threading.Lock from 3.14 on. A thread that waits for one
// reads the clock, and so does a thread that gives one to another. These versions have a function
// of their own for locks and deadlines, PyTime_MonotonicRaw. The program's readings go another way.
//
// Any thread; no allocation; a question costs some loads.
#ifndef DEJA_PRELOAD_SYMBOLS_PYTHON_LOCKS_H_
#define DEJA_PRELOAD_SYMBOLS_PYTHON_LOCKS_H_

#include <cstddef>
#include <cstdint>

namespace deja::preload {

struct PythonCode {
  uintptr_t begin = 0;
  size_t size = 0;  // 0: there is none
  [[nodiscard]] bool Has(uintptr_t address) const { return address - begin < size; }
};

// What is known of the interpreter in this process; constant from its second thread on.
struct PythonLocks {
  PythonCode interpreter;  // its code, if waits for its semaphores read the clock
  // Where PyTime_MonotonicRaw's call of the clock's hook returns to; 0: there is no such place.
  uintptr_t raw_reader = 0;
};
extern constinit PythonLocks g_python_locks;

// Where the calling thread made its last reading of a clock: the caller of the hook, and where
// its frame begins (DWARF's canonical frame address).
extern constinit thread_local uintptr_t t_reading_caller __attribute__((tls_model("initial-exec")));
extern constinit thread_local uintptr_t t_reading_frame __attribute__((tls_model("initial-exec")));
// That was the live clock, since the program does not see it.
extern constinit thread_local bool t_reading_is_live __attribute__((tls_model("initial-exec")));

// Only while the process has one thread, with the guard held.
void FindPythonLocks();

// For the hook of a clock, with its caller.
inline bool IsRawReader(const void* caller) {
  return reinterpret_cast<uintptr_t>(caller) == g_python_locks.raw_reader;
}

// For the hook of a semaphore, with its caller and its frame. Whether the interpreter calls it, and
// has made the thread's last reading for that. True once for each reading.
inline bool TakeReadingOfPythonLock(const void* caller, const void* frame) {
  if (!g_python_locks.interpreter.Has(reinterpret_cast<uintptr_t>(caller))) return false;
  // One function calls both hooks, the clock's through one or two small ones.
  constexpr uintptr_t kNear = 256;
  const bool is_of_lock = reinterpret_cast<uintptr_t>(frame) - t_reading_frame < kNear;
  t_reading_frame = 0;
  return is_of_lock;
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SYMBOLS_PYTHON_LOCKS_H_
