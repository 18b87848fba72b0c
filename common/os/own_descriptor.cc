#include "common/os/own_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

namespace deja {

int MoveUp(int fd) {
  if (fd < 0) return fd;
  for (const int first : {600, 200}) {  // a process may be limited to 256
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, first);
    if (moved < 0) continue;
    close(fd);
    return moved;
  }
  return fd;
}

}  // namespace deja
