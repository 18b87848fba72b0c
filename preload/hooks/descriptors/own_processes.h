// Descriptors of processes that this process has made (pidfd_open). In a replay these run, too. So
// a wait for one, alone or beside pipes of the rank's own, is a meeting (own_pipes.h).
//
// Any thread; no allocation; errno is kept.
#ifndef DEJA_PRELOAD_HOOKS_DESCRIPTORS_OWN_PROCESSES_H_
#define DEJA_PRELOAD_HOOKS_DESCRIPTORS_OWN_PROCESSES_H_

namespace deja::preload {

// The program has opened `fd` for process `pid`, by its number here.
void NoteProcessDescriptor(int fd, int pid);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_DESCRIPTORS_OWN_PROCESSES_H_
