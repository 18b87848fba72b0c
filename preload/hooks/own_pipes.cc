#include "preload/hooks/own_pipes.h"

#include <sys/stat.h>

#include <cerrno>

#include "preload/guard.h"
#include "preload/hooks/fd_table.h"
#include "preload/process_name.h"

namespace deja::preload {

bool IsOwnPipe(int fd) {
  if (fd < 3) return false;
  if (const FdObject* object = FdTable::Find(fd); object != nullptr)
    return object->kind() == FdObject::Kind::kCounter;
  const int saved_errno = errno;
  const Guard guard;
  struct stat st;
  const bool own = fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) &&
                   !CameFromOutside(st.st_ino);
  errno = saved_errno;
  return own;
}

}  // namespace deja::preload
