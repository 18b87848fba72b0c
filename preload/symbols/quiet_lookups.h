// For a process in which a system call may not be allowed any more (real_symbols.h has the
// look-ups).
#ifndef DEJA_PRELOAD_SYMBOLS_QUIET_LOOKUPS_H_
#define DEJA_PRELOAD_SYMBOLS_QUIET_LOOKUPS_H_

namespace deja::preload {

// From now on names are looked up without a system call. Any thread.
void LookUpWithoutKernel();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SYMBOLS_QUIET_LOOKUPS_H_
