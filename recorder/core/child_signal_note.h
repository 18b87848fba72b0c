// SIGCHLD of a program of Python, on its way to the interpreter (preload/engine/child_signal.h).
//
// A signal that comes while the program computes waits for the thread's next call. That is a file
// call, or a wait for a semaphore, a pipe or a process, which it ends. So the place is known
// exactly. If there is no such call for a while, it is sent again and goes to the program wherever
// that is.
#ifndef DEJA_RECORDER_CORE_CHILD_SIGNAL_NOTE_H_
#define DEJA_RECORDER_CORE_CHILD_SIGNAL_NOTE_H_

#include "preload/calls/process_calls.h"
#include "preload/engine/child_signal.h"
#include "recorder/core/recorder.h"

namespace deja::recorder {

// The signal has come. True: the program's handler runs now. Async-signal-safe.
bool TakeOrDelayChildSignal(preload::ChildSignalCause cause);

// A file call of the calling thread ends: a signal that waits goes to the program.
void GiveChildSignalAtFileCall();

// The calling thread begins to sleep. True: a signal that waits goes to the program, and ends that.
bool GiveChildSignalAtSleep();

// True if a signal waits. It ends the wait that the calling thread begins, whose event says so, and
// the caller runs the program's handler.
bool TakeWaitingChildSignal();

// The same, with the handler. False: no signal waits.
bool GiveChildSignalAtWait();

// Writes down where the signal came, if it has. Within the guard.
void WriteChildSignal(Recorder& recorder);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_CORE_CHILD_SIGNAL_NOTE_H_
