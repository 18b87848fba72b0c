#include "common/os/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace deja {

Result<std::string> ReadTextFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FailErrno("reading: " + path, errno);
  std::string text;
  char piece[4096];
  ssize_t n = 0;
  while ((n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR))
    if (n > 0) text.append(piece, static_cast<size_t>(n));
  const int error = errno;
  close(fd);
  if (n < 0) return FailErrno("reading: " + path, error);
  return text;
}

Status WriteTextFile(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return FailErrno("writing: " + path, errno);
  int error = 0;
  while (!text.empty() && error == 0) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno != EINTR) error = errno;
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
  if (close(fd) != 0 && error == 0) error = errno;
  if (error != 0) return FailErrno("writing: " + path, error);
  return {};
}

}  // namespace deja
