// SIGCHLD in a program of Python. The interpreter's handler only marks that the signal has come,
// and Python's own handler runs between two bytecodes, or when a wait returns EINTR. So it makes no
// difference in which instruction it comes, and a replay can choose the call.
//
// Any thread; async-signal-safe.
#ifndef DEJA_PRELOAD_ENGINE_CHILD_SIGNAL_H_
#define DEJA_PRELOAD_ENGINE_CHILD_SIGNAL_H_

#include <atomic>
#include <utility>

namespace deja::preload {

// The program's handler of SIGCHLD, if the interpreter has set it; else null.
extern constinit std::atomic<void (*)(int)> g_child_signal_handler;

// SIGCHLD has reached this thread, the process's first, and the recording does not have it yet.
extern constinit thread_local bool t_child_signal_came __attribute__((tls_model("initial-exec")));
inline bool TakeChildSignal() {
  return std::exchange(t_child_signal_came, false);
}

// Does what the program's handler does when the signal comes, if there is one.
void RunChildSignalHandler();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_CHILD_SIGNAL_H_
