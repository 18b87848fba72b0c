// SIGCHLD in a program of Python. The interpreter's handler only marks that the signal has come,
// and Python's own handler runs between two bytecodes, or when a wait returns EINTR. So it makes no
// difference in which instruction it comes, and Deja can choose the call.
//
// Any thread; async-signal-safe.
#ifndef DEJA_PRELOAD_ENGINE_CHILD_SIGNAL_H_
#define DEJA_PRELOAD_ENGINE_CHILD_SIGNAL_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace deja::preload {

// The program's handler of SIGCHLD, if the interpreter has set it; else null.
extern constinit std::atomic<void (*)(int)> g_child_signal_handler;

// What a thread knows of the signal. Only the process's first one gets it.
struct ChildSignal {
  bool came = false;            // the program has it, the recording does not yet
  int64_t place = 0;            // where it came, as the result of its Input: PlaceOfChildSignal
  bool waits = false;           // for a call of the program's, at which it is given to it
  uint32_t deaf_waits = 0;      // the thread is inside waits that no signal ends
  uint32_t told_waits = 0;      // inside waits whose events say themselves that it has ended them
  bool ends_told_wait = false;  // the handler runs that has ended one of them
  // Calls of open, read, write, close and sigaction since the thread last met another process at a
  // semaphore or a pipe. Only while there is a handler.
  uint64_t file_calls = 0;
  // The depth of guards at which the program's handler runs; it may write to a descriptor
  // (asyncio). -1: it does not run.
  int handler_depth = -1;
  // Where it is among the thread's calls that only sleep, since then: twice their number, one less
  // inside the last one.
  uint32_t sleeps = 0;
  uint32_t place_sleeps = 0;  // with `place`
  bool was_kept = false;      // one has come since the last sleep began, and not to the program
  // Waits for the end of a process that have begun; one that a signal has ended does not count.
  uint64_t child_waits = 0;
};
extern constinit thread_local ChildSignal t_child_signal __attribute__((tls_model("initial-exec")));

// The signal has come, and the recording does not have it yet: it has from now on.
inline bool TakeChildSignal() {
  return std::exchange(t_child_signal.came, false);
}

// Does what the program's handler does when the signal comes, if there is one.
void RunChildSignalHandler();

// The place after that number of file calls. `exact`: the handler ran as the last of them ended;
// else somewhere between that and the next call. 0 is what traces without places have.
inline int64_t PlaceOfChildSignal(uint64_t file_calls, bool exact) {
  const auto place = static_cast<int64_t>(file_calls) + 1;
  return exact ? place : -place;
}

// Each file call matters to the engine, also one for which no signal waits.
extern constinit std::atomic<bool> g_counts_file_calls;

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_CHILD_SIGNAL_H_
