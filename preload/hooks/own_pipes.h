// Descriptors by which processes of the rank speak to each other, and nobody else does: pipes,
// FIFOs and socketpairs of the program's own, and eventfds. In a replay all their ends run.
//
// Any thread; no allocation; errno is kept.
#ifndef DEJA_PRELOAD_HOOKS_OWN_PIPES_H_
#define DEJA_PRELOAD_HOOKS_OWN_PIPES_H_

namespace deja::preload {

// So it is, and Deja does not answer for it. One system call.
bool IsOwnPipe(int fd);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_OWN_PIPES_H_
