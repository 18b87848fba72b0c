// Reads files of a few hundred bytes, as those of /proc and /sys are, into the caller's memory.
#ifndef DEJA_COMMON_OS_SMALL_FILE_H_
#define DEJA_COMMON_OS_SMALL_FILE_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

namespace deja::format {

// The number of bytes read, less than `size`; 0 if there is no such file. `out` is terminated.
// Any thread; no allocation.
inline size_t ReadSmallFile(const char* path, char* out, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t got = read(fd, out, size - 1);
  close(fd);
  if (got < 0) got = 0;
  out[got] = '\0';
  return static_cast<size_t>(got);
}

}  // namespace deja::format

#endif  // DEJA_COMMON_OS_SMALL_FILE_H_
