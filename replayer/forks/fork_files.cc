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

#include "common/os/activity_count.h"
#include "common/os/folder_entries.h"
#include "common/os/small_file.h"
#include "common/runtime/raw_syscall.h"
#include "replayer/forks/as_long.h"
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

long Raw(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  return RawSyscall(number, a, b, c, d);
}

bool HasText(const char* path) {
  char text[8];
  return ReadSmallFile(path, text, sizeof text) != 0;
}

bool HasChildren() {
  bool has = false;
  const bool opened = ForEachEntry("/proc/self/task", [&](const char* name, int) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/children", name);
    has = name[0] != '.' && HasText(path);
    return !has;
  });
  return has || !opened;
}

// Lines of a file, without memory of its own for them.
class Lines {
 public:
  explicit Lines(const char* path)
      : fd_(static_cast<int>(Raw(SYS_openat, AT_FDCWD, AsLong(path), O_RDONLY | O_CLOEXEC))) {}
  ~Lines() {
    if (fd_ >= 0) Raw(SYS_close, fd_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  [[nodiscard]] bool opened() const { return fd_ >= 0; }
  // Null: there are no more. A line that is too long ends early, and its rest is another one.
  const char* Next() {
    for (;;) {
      char* begin = text_ + at_;
      char* end = static_cast<char*>(std::memchr(begin, '\n', size_ - at_));
      if (end == nullptr && at_ == 0 && size_ == sizeof text_ - 1) end = text_ + size_;
      if (end != nullptr) {
        *end = '\0';
        at_ = std::min(size_, static_cast<size_t>(end - text_) + 1);
        return begin;
      }
      size_ -= at_;
      std::memmove(text_, begin, size_);
      at_ = 0;
      const long n =
          Raw(SYS_read, fd_, AsLong(text_ + size_), static_cast<long>(sizeof text_ - 1 - size_));
      if (n <= 0) return nullptr;
      size_ += static_cast<size_t>(n);
    }
  }

 private:
  int fd_;
  size_t at_ = 0;
  size_t size_ = 0;
  char text_[8192];
};

// Writable memory that is shared with other processes, but for the files of `scratch` that an image
// may write, too.
Reason SharedMemory(const std::string& scratch) {
  char pipes[PATH_MAX];
  snprintf(pipes, sizeof pipes, "%s%s", scratch.c_str(), kPipesFile);
  char counts[PATH_MAX];
  snprintf(counts, sizeof counts, "%s%s", scratch.c_str(), kActivityFolder);
  Lines maps("/proc/self/maps");
  if (!maps.opened()) return Reason::Of("/proc/self/maps cannot be read");
  while (const char* line = maps.Next()) {
    const char* access = std::strchr(line, ' ');
    if (access == nullptr || std::strlen(access) < 5 || access[2] != 'w' || access[4] != 's')
      continue;
    const char* path = std::strchr(line, '/');
    const bool apart = path != nullptr && (std::strcmp(path, pipes) == 0 ||
                                           std::strncmp(path, counts, std::strlen(counts)) == 0);
    if (!apart)
      return Reason::Of("it writes to shared memory (%s)", path != nullptr ? path : "no file");
  }
  return {};
}

// Until `see` gives a reason, which is handed on.
template <typename See>
Reason ForEachDescriptor(See see) {
  Reason reason;
  const bool opened = ForEachEntry("/proc/self/fd", [&](const char* name, int listing) {
    const int fd = atoi(name);
    if (name[0] != '.' && fd != listing) reason = see(fd);
    return reason.empty();
  });
  return opened ? reason : Reason::Of("/proc/self/fd cannot be read");
}

}  // namespace

Reason SharedWithOthers(const std::string& scratch) {
  if (HasChildren()) return Reason::Of("it has child processes");
  if (const Reason shared = SharedMemory(scratch); !shared.empty()) return shared;
  if (HasText("/proc/self/timers")) return Reason::Of("it has timers");
  for (const auto which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval timer{};
    if (getitimer(which, &timer) == 0 &&
        (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0))
      return Reason::Of("it has a timer");
  }
  return {};
}

Reason ForkFiles::NoteOne(int fd, const std::string& scratch) {
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
    return standard || inherited ? Reason()
                                 : Reason::Of("it has %s open (descriptor %d)", path.c_str(), fd);
  if (standard && !own) return {};
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const bool removed = EndsWith(path, " (deleted)");
  if (writes && (!own || removed)) return Reason::Of("it writes to %s", path.c_str());
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
    return Reason();
  });
}

ForkFiles::Seen ForkFiles::Look(int fd) {
  struct stat info {};
  Raw(SYS_fstat, fd, AsLong(&info));
  const bool has_position = S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
  return {fd, info.st_dev, info.st_ino, Raw(SYS_fcntl, fd, F_GETFL),
          has_position ? Raw(SYS_lseek, fd, 0, SEEK_CUR) : 0};
}

Reason ForkFiles::Note(const std::string& scratch) {
  files_.clear();
  seen_.clear();
  return ForEachDescriptor([&](int fd) {
    seen_.push_back(Look(fd));
    return NoteOne(fd, scratch);
  });
}

bool ForkFiles::IsAsNoted() const {
  size_t at = 0;
  const Reason changed = ForEachDescriptor([&](int fd) {
    const bool same = at < seen_.size() && seen_[at] == Look(fd);
    ++at;
    return same ? Reason() : Reason::Of("changed");
  });
  return changed.empty() && at == seen_.size();
}

Reason ForkFiles::OpenAgain() const {
  for (const File& file : files_) {
    int fd = file.same_as;
    if (fd < 0) {
      char link[32];
      snprintf(link, sizeof link, "/proc/self/fd/%d", file.fd);
      const char* path = file.path.empty() ? link : file.path.c_str();
      fd = static_cast<int>(Raw(SYS_openat, AT_FDCWD, AsLong(path), file.flags | O_CLOEXEC));
      if (fd < 0) return Reason::Of("reopening: %s: %s", path, strerrordesc_np(-fd));
      if (file.position >= 0) Raw(SYS_lseek, fd, file.position, SEEK_SET);
    }
    Raw(SYS_dup3, fd, file.fd, (file.descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
    if (file.same_as < 0) Raw(SYS_close, fd);
  }
  return {};
}

}  // namespace deja::replayer
