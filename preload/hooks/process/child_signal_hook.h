// The interpreter of Python sets a handler for SIGCHLD (preload/engine/child_signal.h).
//
// Any thread.
#ifndef DEJA_PRELOAD_HOOKS_PROCESS_CHILD_SIGNAL_HOOK_H_
#define DEJA_PRELOAD_HOOKS_PROCESS_CHILD_SIGNAL_HOOK_H_

#include <csignal>

namespace deja::preload {

// True of SIGCHLD if the interpreter sets its handler, or has set it.
bool IsChildSignal(int signal, const struct sigaction* action);
// As sigaction, for a signal of which that is true.
int SetChildSignalAction(const struct sigaction* action, struct sigaction* old);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PROCESS_CHILD_SIGNAL_HOOK_H_
