#include "preload/files/absolute_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "common/runtime/errno_keeper.h"

namespace deja::preload {

bool AppendPath(std::string_view path, std::span<char> buffer, size_t& size) {
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      while (size > 0 && buffer[--size] != '/') continue;
      continue;
    }
    if (size + 1 + part.size() > buffer.size()) return false;
    buffer[size++] = '/';
    std::memcpy(buffer.data() + size, part.data(), part.size());
    size += part.size();
  }
  return true;
}

std::string_view PathOfDescriptor(int dirfd, std::span<char> buffer) {
  char link[40] = "/proc/self/cwd";
  if (dirfd != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
  const ErrnoKeeper keep;
  const ssize_t n = readlink(link, buffer.data(), buffer.size());
  return n <= 0 || buffer[0] != '/' ? std::string_view()
                                    : std::string_view(buffer.data(), static_cast<size_t>(n));
}

std::string_view AbsolutePath(int dirfd, const char* path, std::span<char> buffer) {
  size_t size = 0;
  if (path[0] != '/') {
    size = PathOfDescriptor(dirfd, buffer).size();
    if (size == 0) return {};
    if (size == 1) size = 0;  // the root
  }
  if (!AppendPath(path, buffer, size)) return {};
  if (size == 0) buffer[size++] = '/';
  return {buffer.data(), size};
}

int DescriptorNamedBy(const char* path) {
  static constexpr const char* kStreams[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (int fd = 0; fd < 3; ++fd)
    if (std::strcmp(path, kStreams[fd]) == 0) return fd;
  const char* number = nullptr;
  for (const char* folder : {"/dev/fd/", "/proc/self/fd/"})
    if (std::strncmp(path, folder, std::strlen(folder)) == 0) number = path + std::strlen(folder);
  if (number == nullptr || *number == '\0') return -1;
  constexpr int kMost = 1 << 20;
  int fd = 0;
  for (; *number != '\0'; ++number) {
    if (*number < '0' || *number > '9' || fd > kMost) return -1;
    fd = fd * 10 + (*number - '0');
  }
  return fd;
}

}  // namespace deja::preload
