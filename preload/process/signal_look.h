// What Input events of waitpid say beside the program's own questions. They say whether a child had
// ended when a thread sent it a signal that ends processes, and which wait SIGCHLD has ended.
#ifndef DEJA_PRELOAD_PROCESS_SIGNAL_LOOK_H_
#define DEJA_PRELOAD_PROCESS_SIGNAL_LOOK_H_

#include <csignal>
#include <cstdint>

namespace deja::preload {

// Whether a process that has no handler for the signal ends by it (signal(7)). 0 is no signal.
inline bool EndsProcesses(int signal) {
  switch (signal) {
    case 0:
    case SIGCHLD:
    case SIGCONT:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGURG:
    case SIGWINCH:
      return false;
    default:
      return true;
  }
}

// The key of such an event; its result is 1 where the child had ended, else 0. `pid`: as recorded.
inline uint64_t KeyOfSignal(int pid) {
  return (uint64_t{1} << 32) | static_cast<uint32_t>(pid);
}

// The key of an event that says that SIGCHLD has ended a wait for a process (EINTR). Its result is
// -N: it was the thread's N-th, not counting those that ended so.
inline constexpr uint64_t kKeyOfEndedWait = uint64_t{1} << 33;

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_SIGNAL_LOOK_H_
