// Whether a descriptor or a name is still the file that Deja has made. The calls bypass other
// tools' functions: libfaketime has a stat of its own, and frees what that needs before Deja's last
// calls.
#ifndef DEJA_COMMON_OS_OWN_STAT_H_
#define DEJA_COMMON_OS_OWN_STAT_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/runtime/raw_syscall.h"

namespace deja {

// As fstat; false, and errno stays, if it fails. Any thread; async-signal-safe.
inline bool OwnStat(int fd, struct stat* info) {
  return RawSyscall(SYS_fstat, fd, reinterpret_cast<long>(info)) == 0;
}

// As lstat, likewise.
inline bool OwnStat(const char* path, struct stat* info) {
  return RawSyscall(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path),
                    reinterpret_cast<long>(info), AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace deja

#endif  // DEJA_COMMON_OS_OWN_STAT_H_
