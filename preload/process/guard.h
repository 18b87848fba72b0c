// Guards: who is speaking. What Deja itself calls, and what the real NCCL calls inside itself, is
// not the program's and is not recorded.
//
// A hook does `if (InsideDeja()) forward; else { Guard guard; engine->… }`. Call::invoke and
// InputCall::Real keep the guard held during the real call, so that nested calls pass through.
// Threads that are created while the guard is held (NCCL's proxy threads, Deja's writer) are born
// with it and keep it for good. Thread-local, async-signal-safe, no allocation (initial-exec TLS).
#ifndef DEJA_PRELOAD_PROCESS_GUARD_H_
#define DEJA_PRELOAD_PROCESS_GUARD_H_

#include <cstdint>

namespace deja::preload {

extern constinit thread_local uint32_t t_guard_depth __attribute__((tls_model("initial-exec")));

inline bool InsideDeja() {
  return t_guard_depth != 0;
}

class Guard {
 public:
  Guard() { ++t_guard_depth; }
  ~Guard() { --t_guard_depth; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_GUARD_H_
