// ProcessCalls: what an engine does with other processes: children, waits, signals, process ids.
//
// Any thread, with the guard held. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_PROCESS_CALLS_H_
#define DEJA_PRELOAD_CALLS_PROCESS_CALLS_H_

#include <cstdint>

#include "preload/process/next_program.h"

namespace deja::preload {

// A wait for processes. Before it `pid` and `options` are as in waitpid (waitid's P_ALL is -1, its
// P_PGID a negative number); after it `result` is the process or 0 or -1, and `status` is encoded
// as waitpid's.
struct WaitCall {
  int pid = -1;
  int options = 0;  // waitpid's and waitid's; WNOWAIT: the process can be waited for again
  int result = 0;
  int status = 0;
  bool finds_nothing = false;  // set before it: no process has ended, and no call is made
  bool is_ended = false;       // set before it: by SIGCHLD, whose handler runs; no call is made
  bool is_at_place = false;    // set before it: the end is there, and the thread may hear of it
};

// Why the handler of SIGCHLD is entered: the signal ended a system call that waited; it was sent
// again, since it had waited for a call for too long; else.
enum class ChildSignalCause : uint8_t { kEndedWait, kSentAgain, kOther };

class ProcessCalls {
 public:
  // False, with errno set, when a signal must not be sent to `pid`.
  virtual bool MayKill(int pid, int signal) = 0;

  // The live process (or process group) that the program means by `pid`. A replay serves the
  // recorded pid, so kill, waitpid and sched_* translate it back. Ask before MayKill.
  virtual int MapPid(int pid) { return pid; }
  // The calling thread has made process `pid`, its `number`-th. Returns the pid that the program
  // gets. `program`: what it has become by vfork or posix_spawn; empty: a fork, or not known.
  virtual int OnChildMade([[maybe_unused]] uint32_t number, int pid,
                          [[maybe_unused]] const NextProgram& program) {
    return pid;
  }
  // The calling thread is about to fork its `number`-th process. If the result is not 0, it does
  // not fork, and the program gets this pid.
  virtual int SkippedChild([[maybe_unused]] uint32_t number) { return 0; }
  // The pid that the process which the calling thread makes next believes to have; 0: its real one.
  // Changes nothing; also called in a vfork child.
  virtual int RecordedChildPid([[maybe_unused]] uint32_t number) { return 0; }
  // Around a wait for processes: the first may change `pid`, the second `result` and `status`.
  virtual void BeforeWait([[maybe_unused]] WaitCall& call) {}
  virtual void AfterWait([[maybe_unused]] WaitCall& call) {}
  // A signal has ended a wait for processes.
  virtual void AfterEndedWait() {}
  // A wait that does not want to wait (WNOHANG) found no process that has ended.
  virtual void AfterVainWait([[maybe_unused]] WaitCall& call) {}
  // SIGCHLD has reached the first thread of a program of Python (preload/engine/child_signal.h).
  // True: the program's handler runs now. Without the guard; async-signal-safe.
  virtual bool OnChildSignal([[maybe_unused]] ChildSignalCause cause) { return true; }
  // The calling thread goes on to a call at which a place can be known, and the signal has reached
  // it, or waits. True: it has been given to the program. Without the guard.
  virtual bool BeforeCallAtPlace() { return false; }
  // A call of the calling thread's that opens, reads, writes or closes a file has been counted
  // (preload/engine/child_signal.h). Without the guard.
  virtual void AfterFileCall() {}
  // The calling thread begins to sleep, and this has been counted. True: the signal ends the sleep,
  // and has been given to the program. Without the guard.
  virtual bool EndsSleep() { return false; }
  // It has slept. Without the guard.
  virtual void AfterSleep() {}

 protected:
  ~ProcessCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_PROCESS_CALLS_H_
