#include "recorder/files/created_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "api/libc_table.h"
#include "common/runtime/errno_keeper.h"
#include "preload/files/machine_files.h"
#include "recorder/core/recording.h"

namespace deja::recorder {
namespace {

// Devices and the kernel's files are as they are in a replay.
bool IsKernels(std::string_view path) {
  return path.starts_with("/proc/") || path.starts_with("/sys/") ||
         (path.starts_with("/dev/") && !path.starts_with("/dev/shm/"));
}

}  // namespace

void NoteCreation(Recording& rec, int dirfd, const char* path) {
  ErrnoKeeper keep;
  struct stat info;
  if (fstatat(dirfd, path, &info, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) return;
  char absolute[2 * PATH_MAX];
  size_t size = 0;
  if (path[0] != '/') {
    char link[40] = "/proc/self/cwd";
    if (dirfd != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
    const ssize_t n = readlink(link, absolute, PATH_MAX);
    if (n <= 0) return;
    size = static_cast<size_t>(n);
    absolute[size++] = '/';
  }
  const size_t length = strnlen(path, PATH_MAX);
  std::memcpy(absolute + size, path, length);
  const std::string_view name(absolute, size + length);
  if (IsKernels(name)) return;
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::kcreat);
  input.key = preload::MachineKey(name);
  input.data = name;
  rec.writer.Write(input);
  rec.RelieveStaging();
}

}  // namespace deja::recorder
