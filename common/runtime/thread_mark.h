// An address that belongs to the calling thread: who holds a lock, without a system call.
#ifndef DEJA_COMMON_RUNTIME_THREAD_MARK_H_
#define DEJA_COMMON_RUNTIME_THREAD_MARK_H_

namespace deja::format {

inline thread_local char t_thread_mark __attribute__((tls_model("initial-exec")));

inline const void* ThreadMark() {
  return &t_thread_mark;
}

}  // namespace deja::format

#endif  // DEJA_COMMON_RUNTIME_THREAD_MARK_H_
