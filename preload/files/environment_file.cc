#include "preload/files/environment_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "common/own_variable_names.h"
#include "common/runtime/own_mapping.h"
#include "preload/files/machine_files.h"
#include "preload/process/own_variables.h"
#include "preload/process/process_name.h"

namespace deja::preload {
namespace {

constexpr size_t kMostEnvironment = 8 << 20;  // the kernel's own limit is below
constexpr std::string_view kList = "LD_PRELOAD=";

size_t ReadEnvironment(char* to) {
  const int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t size = 0;
  for (ssize_t n = 0;
       size < kMostEnvironment && (n = read(fd, to + size, kMostEnvironment - size)) > 0;)
    size += static_cast<size_t>(n);
  close(fd);
  return size;
}

// Without what is Deja's, in place: entries that each end in a zero. The new size.
size_t WithoutOurs(char* text, size_t size) {
  size_t kept = 0;
  for (size_t at = 0; at < size;) {
    const size_t length = strnlen(text + at, size - at);
    const size_t next = std::min(at + length + 1, size);
    std::string_view entry(text + at, length);
    if (entry.substr(0, kList.size()) == kList && entry.find(OwnLibrary()) != entry.npos) {
      // Over itself: an item moves towards the beginning, if at all.
      const std::string_view list = entry.substr(kList.size());
      const size_t left = WithoutOwnLibrary(list, {text + at + kList.size(), list.size() + 1});
      const bool is_emptied = entry.ends_with(':');
      entry = entry.substr(0, kList.size() + left);
      if (left != 0 || is_emptied) {
        std::memmove(text + kept, entry.data(), entry.size() + 1);
        kept += entry.size() + 1;
      }
    } else if (!IsHiddenVariable(entry)) {
      std::memmove(text + kept, text + at, next - at);
      kept += next - at;
    }
    at = next;
  }
  return kept;
}

}  // namespace

bool IsOwnEnvironmentFile(int dirfd, const char* path) {
  constexpr std::string_view kName = "environ";
  const std::string_view asked = path;
  if (!asked.ends_with(kName) || !OwnVariablesAreHidden()) return false;
  const ProcessName& name = OwnProcessName();
  char buffer[PATH_MAX];
  return MachineName(dirfd, path, {name.pid, name.recorded_pid, {}}, buffer) ==
         "/proc/self/environ";
}

int LendEnvironment(std::span<char> path) {
  char* text = static_cast<char*>(MapOwn(kMostEnvironment, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE));
  if (text == MAP_FAILED) return -1;
  const size_t size = WithoutOurs(text, ReadEnvironment(text));
  int fd = memfd_create("deja", MFD_CLOEXEC);
  if (fd >= 0 && write(fd, text, size) != static_cast<ssize_t>(size)) {
    close(fd);
    fd = -1;
  }
  UnmapOwn(text, kMostEnvironment);
  if (fd >= 0) snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
  return fd;
}

}  // namespace deja::preload
