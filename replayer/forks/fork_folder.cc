#include "replayer/forks/fork_folder.h"

#include <fcntl.h>
#include <ftw.h>
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
constexpr int kDescriptors = 8;

std::string FolderOf(const std::string& scratch, uint64_t number) {
  return scratch + kForkFolders + "/" + std::to_string(number);
}

int OpenAt(int folder, const char* name, int flags, mode_t mode = 0) {
  return static_cast<int>(
      RawSyscall(SYS_openat, folder, AsLong(name), flags | O_CLOEXEC, static_cast<long>(mode)));
}

// Of one folder into another, which is empty.
class Copy {
 public:
  // `skipped`: a name in the topmost folder.
  explicit Copy(const char* skipped) : skipped_(skipped) {}
  Reason Folder(const char* from, int to, int depth = 0) {
    if (depth == kMaxDepth) return Reason::Of("the program has made folders within folders");
    Reason reason;
    const bool opened = ForEachEntry(from, [&](const char* name, int folder) {
      const bool skips = std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0 ||
                         (depth == 0 && std::strcmp(name, skipped_) == 0);
      if (!skips) reason = One(folder, name, to, depth);
      return reason.empty();
    });
    return opened ? reason : Reason::Of("reading %.120s failed", from);
  }

 private:
  Reason One(int folder, const char* name, int to, int depth) {
    struct stat info {};
    bool ok = RawSyscall(SYS_newfstatat, folder, AsLong(name), AsLong(&info),
                         AT_SYMLINK_NOFOLLOW) == 0;
    if (ok && S_ISDIR(info.st_mode)) return Within(folder, name, to, depth, info);
    if (ok && S_ISREG(info.st_mode)) {
      bytes_ += static_cast<uint64_t>(info.st_size);
      if (++files_ > kMaxFiles || bytes_ > kMaxBytes)
        return Reason::Of("the program has written more than an image should hold");
      ok = Bytes(folder, name, to, info);
    } else if (ok && S_ISLNK(info.st_mode)) {
      ok = Link(folder, name, to);
    } else if (ok) {
      return Reason::Of("%.100s is no file that can be copied", name);
    }
    return ok ? Reason() : Reason::Of("copying %.100s failed", name);
  }

  Reason Within(int folder, const char* name, int to, int depth, const struct stat& info) {
    const int from = OpenAt(folder, name, O_RDONLY | O_DIRECTORY);
    RawSyscall(SYS_mkdirat, to, AsLong(name), 0700);
    const int made = OpenAt(to, name, O_RDONLY | O_DIRECTORY);
    Reason reason = Reason::Of("copying %.100s failed", name);
    if (from >= 0 && made >= 0) {
      char path[32];
      snprintf(path, sizeof path, "/proc/self/fd/%d", from);
      reason = Folder(path, made, depth + 1);
      RawSyscall(SYS_fchmod, made, (info.st_mode & 07777) | 0700);
    }
    if (from >= 0) RawSyscall(SYS_close, from);
    if (made >= 0) RawSyscall(SYS_close, made);
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

  const char* skipped_;
  uint64_t bytes_ = 0;
  uint64_t files_ = 0;
  char buffer_[1 << 15];
};

int RemoveOne(const char* path, const struct stat*, int, FTW*) {
  return remove(path);
}

}  // namespace

Reason KeepFolder(const std::string& scratch, uint64_t number) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%s", scratch.c_str(), kForkFolders);
  RawSyscall(SYS_mkdirat, AT_FDCWD, AsLong(path), 0700);
  snprintf(path, sizeof path, "%s%s/%lu", scratch.c_str(), kForkFolders,
           static_cast<unsigned long>(number));
  RawSyscall(SYS_mkdirat, AT_FDCWD, AsLong(path), 0700);
  const int to = OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (to < 0) return Reason::Of("making %.120s failed", path);
  Copy copy(kForkFolders + 1);
  const Reason reason = copy.Folder(scratch.c_str(), to);
  RawSyscall(SYS_close, to);
  return reason;
}

void RemoveKeptFolder(const std::string& scratch, uint64_t number) {
  nftw(FolderOf(scratch, number).c_str(), RemoveOne, kDescriptors, FTW_PHYS | FTW_DEPTH);
}

}  // namespace deja::replayer
