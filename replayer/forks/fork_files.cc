#include "replayer/forks/fork_files.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/os/folder_entries.h"
#include "preload/symbols/program_heap.h"
#include "replayer/report/program_output.h"

namespace deja::replayer {
namespace {

// Memory, and terminals: nothing in them has a position.
bool IsPlainDevice(dev_t device) {
  constexpr unsigned kMemory = 1;
  constexpr unsigned kTerminals = 5;
  constexpr unsigned kFirstPty = 136;
  constexpr unsigned kLastPty = 143;
  const unsigned number = major(device);
  return number == kMemory || number == kTerminals || (number >= kFirstPty && number <= kLastPty);
}

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = readlink(link.c_str(), path, sizeof path);
  return n < 0 ? std::string() : std::string(path, static_cast<size_t>(n));
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// As far as it goes in one read: enough to see whether there is anything.
std::string BeginOf(const char* path) {
  char text[256];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  return n <= 0 ? std::string() : std::string(text, static_cast<size_t>(n));
}

// The path of writable memory that is shared with other processes, but for `apart`.
std::string SharedMemory(const std::string& apart) {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == nullptr) return "/proc/self/maps cannot be read";
  char* line = nullptr;
  size_t room = 0;
  std::string found;
  while (found.empty() && getline(&line, &room, maps) > 0) {
    const char* access = std::strchr(line, ' ');
    if (access == nullptr || std::strlen(access) < 5 || access[2] != 'w' || access[4] != 's')
      continue;
    const char* path = std::strchr(line, '/');
    found = path != nullptr ? std::string(path, std::strcspn(path, "\n")) : "no file";
    if (found == apart) found.clear();
  }
  preload::ProgramFree(line);
  fclose(maps);
  return found;
}

// Until `see` gives a text, which is handed on.
template <typename See>
std::string ForEachDescriptor(See see) {
  std::string text;
  const bool opened = ForEachEntry("/proc/self/fd", [&](const char* name, int listing) {
    const int fd = atoi(name);
    if (name[0] != '.' && fd != listing) text = see(fd);
    return text.empty();
  });
  return opened ? text : "/proc/self/fd cannot be read";
}

}  // namespace

std::string SharedWithOthers(const std::string& scratch) {
  const auto tid = static_cast<int>(syscall(SYS_gettid));
  const std::string children = "/proc/self/task/" + std::to_string(tid) + "/children";
  if (!BeginOf(children.c_str()).empty()) return "it has child processes";
  if (const std::string shared = SharedMemory(scratch + kPipesFile); !shared.empty())
    return "it writes to shared memory (" + shared + ")";
  if (!BeginOf("/proc/self/timers").empty()) return "it has timers";
  for (const auto which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval timer{};
    if (getitimer(which, &timer) == 0 &&
        (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0))
      return "it has a timer";
  }
  return {};
}

std::string ForkFiles::NoteOne(int fd, const std::string& scratch) {
  struct stat info;
  if (fstat(fd, &info) != 0 || IsKeptOutput(fd)) return {};
  const std::string path = PathOf(fd);
  const bool own = path.compare(0, scratch.size() + 1, scratch + "/") == 0;
  const bool standard = fd <= STDERR_FILENO;
  if (S_ISCHR(info.st_mode) && IsPlainDevice(info.st_rdev)) return {};
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0) return {};
  const bool inherited = std::find(inherited_.begin(), inherited_.end(),
                                   std::pair(info.st_dev, info.st_ino)) != inherited_.end();
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return standard || inherited
               ? ""
               : "it has " + path + " open (descriptor " + std::to_string(fd) + ")";
  if (standard && !own) return {};
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const bool removed = EndsWith(path, " (deleted)");
  if (writes && (!own || removed)) return "it writes to " + path;
  // /proc/self/fd has links.
  File file{fd, flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW), fcntl(fd, F_GETFD),
            lseek(fd, 0, SEEK_CUR), own && !removed ? path : std::string()};
  const long pid = syscall(SYS_getpid);
  for (const File& other : files_)
    if (other.same_as < 0 && syscall(SYS_kcmp, pid, pid, KCMP_FILE, fd, other.fd) == 0)
      file.same_as = other.fd;
  files_.push_back(std::move(file));
  return {};
}

void ForkFiles::NoteInherited() {
  ForEachDescriptor([this](int fd) {
    struct stat info;
    if (fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)))
      inherited_.emplace_back(info.st_dev, info.st_ino);
    return std::string();
  });
}

std::string ForkFiles::Note(const std::string& scratch) {
  files_.clear();
  return ForEachDescriptor([&](int fd) { return NoteOne(fd, scratch); });
}

std::string ForkFiles::OpenAgain() const {
  for (const File& file : files_) {
    int fd = file.same_as;
    if (fd < 0) {
      const std::string path =
          file.path.empty() ? "/proc/self/fd/" + std::to_string(file.fd) : file.path;
      fd = open(path.c_str(), file.flags | O_CLOEXEC);
      if (fd < 0) return "reopening: " + path + ": " + strerrordesc_np(errno);
      if (file.position >= 0) lseek(fd, file.position, SEEK_SET);
    }
    dup3(fd, file.fd, (file.descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
    if (file.same_as < 0) close(fd);
  }
  return {};
}

}  // namespace deja::replayer
