#include "replayer/forks/fork_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>

#include "common/os/folder_entries.h"
#include "common/runtime/raw_syscall.h"
#include "replayer/forks/as_long.h"

namespace deja::replayer {
namespace {

constexpr uint64_t kMaxBytes = 64 << 20;
constexpr uint64_t kMaxFiles = 2000;
constexpr int kMaxDepth = 32;

using Path = char[PATH_MAX];

void FolderOf(const std::string& scratch, uint64_t number, Path& path) {
  snprintf(path, sizeof path, "%s%s/%lu", scratch.c_str(), kForkFolders,
           static_cast<unsigned long>(number));
}

int OpenAt(int folder, const char* name, int flags, mode_t mode = 0) {
  return static_cast<int>(
      RawSyscall(SYS_openat, folder, AsLong(name), flags | O_CLOEXEC, static_cast<long>(mode)));
}

bool IsDots(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

// Appends a name to a path. Back to what it was when this goes.
class Appended {
 public:
  Appended(Path& path, const char* name) : path_(path), size_(std::strlen(path)) {
    snprintf(path + size_, sizeof path - size_, "/%s", name);
  }
  ~Appended() { path_[size_] = '\0'; }
  Appended(const Appended&) = delete;
  Appended& operator=(const Appended&) = delete;

 private:
  Path& path_;
  size_t size_;
};

// The folder `path`, and all that is in it.
void Remove(Path& path, int depth = 0) {
  if (depth == kMaxDepth) return;
  ForEachEntry(path, [&](const char* name, int folder) {
    if (IsDots(name) || RawSyscall(SYS_unlinkat, folder, AsLong(name), 0) == 0) return true;
    const Appended inner(path, name);
    Remove(path, depth + 1);
    return true;
  });
  RawSyscall(SYS_unlinkat, AT_FDCWD, AsLong(path), AT_REMOVEDIR);
}

// Copies one folder into another, which is empty.
class Copy {
 public:
  explicit Copy(const std::string& from) { snprintf(path_, sizeof path_, "%s", from.c_str()); }
  // But for a name in the topmost folder.
  Reason Into(int to, const char* skipped = "", int depth = 0) {
    if (depth == kMaxDepth) return Reason::Of("%s is too deep", path_);
    Reason reason;
    const bool opened = ForEachEntry(path_, [&](const char* name, int folder) {
      if (IsDots(name) || std::strcmp(name, skipped) == 0) return true;
      const Appended inner(path_, name);
      reason = One(folder, name, to, depth);
      return reason.empty();
    });
    return opened ? reason : Reason::Of("reading %s failed", path_);
  }

 private:
  Reason One(int folder, const char* name, int to, int depth) {
    struct stat info {};
    bool ok =
        RawSyscall(SYS_newfstatat, folder, AsLong(name), AsLong(&info), AT_SYMLINK_NOFOLLOW) == 0;
    if (ok && S_ISDIR(info.st_mode)) return Within(name, to, depth, info);
    if (ok && S_ISREG(info.st_mode)) {
      bytes_ += static_cast<uint64_t>(info.st_size);
      if (++files_ > kMaxFiles || bytes_ > kMaxBytes)
        return Reason::Of("the program has written more than an image should hold");
      ok = Bytes(folder, name, to, info);
    } else if (ok && S_ISLNK(info.st_mode)) {
      ok = Link(folder, name, to);
    } else if (ok) {
      return Reason::Of("%s is no file that can be copied", path_);
    }
    return ok ? Reason() : Reason::Of("copying %s failed", path_);
  }

  Reason Within(const char* name, int to, int depth, const struct stat& info) {
    RawSyscall(SYS_mkdirat, to, AsLong(name), 0700);
    const int made = OpenAt(to, name, O_RDONLY | O_DIRECTORY);
    if (made < 0) return Reason::Of("copying %s failed", path_);
    const Reason reason = Into(made, "", depth + 1);
    RawSyscall(SYS_fchmod, made, (info.st_mode & 07777) | 0700);
    RawSyscall(SYS_close, made);
    return reason;
  }

  bool Bytes(int folder, const char* name, int to, const struct stat& info) {
    const int in = OpenAt(folder, name, O_RDONLY | O_NOFOLLOW);
    if (in < 0) return false;
    const int out = OpenAt(to, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    bool ok = out >= 0;
    long n = 0;
    while (ok && (n = RawSyscall(SYS_read, in, AsLong(buffer_), sizeof buffer_)) > 0)
      ok = RawSyscall(SYS_write, out, AsLong(buffer_), n) == n;
    const timespec times[] = {info.st_atim, info.st_mtim};
    ok = ok && n == 0 && RawSyscall(SYS_fchmod, out, info.st_mode & 07777) == 0 &&
         RawSyscall(SYS_utimensat, out, 0, AsLong(times), 0) == 0;
    if (out >= 0) RawSyscall(SYS_close, out);
    RawSyscall(SYS_close, in);
    return ok;
  }

  bool Link(int folder, const char* name, int to) {
    const long n =
        RawSyscall(SYS_readlinkat, folder, AsLong(name), AsLong(buffer_), sizeof buffer_ - 1);
    if (n < 0) return false;
    buffer_[n] = '\0';
    return RawSyscall(SYS_symlinkat, AsLong(buffer_), to, AsLong(name)) == 0;
  }

  Path path_;
  uint64_t bytes_ = 0;
  uint64_t files_ = 0;
  char buffer_[1 << 15];
};

}  // namespace

Reason KeepFolder(const std::string& scratch, uint64_t number) {
  Path path;
  snprintf(path, sizeof path, "%s%s", scratch.c_str(), kForkFolders);
  RawSyscall(SYS_mkdirat, AT_FDCWD, AsLong(path), 0700);
  FolderOf(scratch, number, path);
  Remove(path);
  RawSyscall(SYS_mkdirat, AT_FDCWD, AsLong(path), 0700);
  const int to = OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (to < 0) return Reason::Of("making %s failed", path);
  const Reason reason = Copy(scratch).Into(to, kForkFolders + 1);
  RawSyscall(SYS_close, to);
  if (!reason.empty()) Remove(path);
  return reason;
}

void RemoveKeptFolder(const std::string& scratch, uint64_t number) {
  Path path;
  FolderOf(scratch, number, path);
  Remove(path);
}

}  // namespace deja::replayer
