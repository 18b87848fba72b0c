// Fatal signals: first the engine notes them, then the program sees what it would have seen without
// Deja.
//
// Handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP, and for SIGTERM while its
// action is the default one. The program's own handlers are kept here and called with the same
// siginfo (in a replay with the sender's recorded pid) and context; their flags and masks are those
// that the kernel is given. Without one, the default action is taken at the same place, so that
// exit status and core dump are the same. Signals that are ignored are left alone (children inherit
// that). Threads get an alternate stack where they have none, which the program does not see.
//
// Any thread. What the handler does is async-signal-safe; a fault in it or in the engine is caught
// and the signal is handed on all the same.
#ifndef DEJA_PRELOAD_ENGINE_SIGNALS_H_
#define DEJA_PRELOAD_ENGINE_SIGNALS_H_

#include <csignal>

namespace deja::preload {

// Once, when the engine has been made.
void InstallCrashHandlers();
// The program's actions are the kernel's again, for good; the calling thread gives our alternate
// stack back.
void RemoveCrashHandlers();

// The calling thread gets an alternate stack if it has none / gives ours back. At its start and
// end.
void GiveAlternateStack();
void TakeAlternateStackBack();

// Whether the program's handler of a watched signal runs on this thread. It may have come in the
// middle of one of Deja's own calls, and is the program all the same.
bool InProgramHandler();

// For the hooks. As sigaction, for a signal of which IsWatched is true.
bool IsWatched(int signal);
int SetProgramAction(int signal, const struct sigaction* action, struct sigaction* old);
// As sigaltstack.
int SetProgramStack(const stack_t* stack, stack_t* old);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_SIGNALS_H_
