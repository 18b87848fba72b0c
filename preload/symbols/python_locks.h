// Readings of the monotonic clock that Python's locks make (threading.Lock, 3.11 to 3.13). They
// make one whenever a thread takes the lock or tries to, whether there is a deadline or not. A lock
// that another thread has is tried first and then waited for, so that it reads the clock twice.
//
// Any thread; no allocation; a question costs two loads.
#ifndef DEJA_PRELOAD_SYMBOLS_PYTHON_LOCKS_H_
#define DEJA_PRELOAD_SYMBOLS_PYTHON_LOCKS_H_

#include <cstddef>
#include <cstdint>

namespace deja::preload {

// The interpreter's code, if its locks read the clock.
struct PythonLockCode {
  uintptr_t begin = 0;
  size_t size = 0;  // 0: there is none, or they do not
};
extern constinit PythonLockCode g_python_lock_code;

// Where the calling thread made its last reading of a clock: the frame of the hook.
extern constinit thread_local uintptr_t t_reading_frame __attribute__((tls_model("initial-exec")));

// Only while the process has one thread, with the guard held.
void FindPythonLockCode();

// For the hook of a semaphore, with its caller and its frame. Whether a lock of Python's calls it,
// and has made the thread's last reading for that. True once for each reading.
inline bool TakeReadingOfPythonLock(const void* caller, const void* frame) {
  const PythonLockCode& code = g_python_lock_code;
  if (reinterpret_cast<uintptr_t>(caller) - code.begin >= code.size) return false;
  // One function calls both hooks, the clock's through one or two small ones.
  constexpr uintptr_t kNear = 256;
  const bool is_of_lock = reinterpret_cast<uintptr_t>(frame) - t_reading_frame < kNear;
  t_reading_frame = 0;
  return is_of_lock;
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SYMBOLS_PYTHON_LOCKS_H_
