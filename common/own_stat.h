// Whether a descriptor is still the file that Deja has opened: past the functions of other tools.
// libfaketime has an fstat of its own, and takes what that needs down before Deja's last calls.
#ifndef DEJA_COMMON_OWN_STAT_H_
#define DEJA_COMMON_OWN_STAT_H_

#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/raw_syscall.h"

namespace deja {

// As fstat; false, and errno stays, if it fails. Any thread; async-signal-safe.
inline bool OwnStat(int fd, struct stat* info) {
  return RawSyscall(SYS_fstat, fd, reinterpret_cast<long>(info)) == 0;
}

}  // namespace deja

#endif  // DEJA_COMMON_OWN_STAT_H_
