// A program that installs a seccomp filter, by prctl or syscall.
#ifndef DEJA_PRELOAD_HOOKS_PROCESS_FILTER_HOOKS_H_
#define DEJA_PRELOAD_HOOKS_PROCESS_FILTER_HOOKS_H_

namespace deja::preload {

// Before the program makes one of these calls. Any thread. The second returns the flags to make it
// with.
void BeforePrctl(long option, long mode, const void* filter);
long BeforeSeccomp(long operation, long flags, const void* filter);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PROCESS_FILTER_HOOKS_H_
