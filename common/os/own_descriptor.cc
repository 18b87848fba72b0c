#include "common/os/own_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

namespace deja {

int MoveUp(int fd) {
  constexpr int kFirst = 600;
  const int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, kFirst);
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

}  // namespace deja
