// Looking at files: the variants of stat, by name and by descriptor.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <cerrno>

#include "common/runtime/errno_keeper.h"
#include "common/runtime/raw_syscall.h"
#include "preload/calls/file_calls.h"
#include "preload/hooks/export.h"
#include "preload/hooks/files/paths.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

// Both kinds are one on 64-bit machines.
static_assert(sizeof(struct stat) == sizeof(struct stat64));

void Tell(const char* mapped, int fd, struct stat& info) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return;
  const ErrnoKeeper keep;
  {
    const Guard guard;
    engine->files->OnStat(mapped, fd, info);
  }
}

void Tell(const char* mapped, int fd, struct stat64& info) {
  Tell(mapped, fd, reinterpret_cast<struct stat&>(info));
}

void Tell(const char* mapped, int fd, struct statx& info) {
  struct stat same {};
  same.st_dev = makedev(info.stx_dev_major, info.stx_dev_minor);
  same.st_ino = info.stx_ino;
  same.st_mode = info.stx_mode;
  same.st_uid = info.stx_uid;
  same.st_gid = info.stx_gid;
  same.st_nlink = info.stx_nlink;
  same.st_size = static_cast<off_t>(info.stx_size);
  same.st_blocks = static_cast<blkcnt_t>(info.stx_blocks);
  same.st_atim = {info.stx_atime.tv_sec, info.stx_atime.tv_nsec};
  same.st_mtim = {info.stx_mtime.tv_sec, info.stx_mtime.tv_nsec};
  same.st_ctim = {info.stx_ctime.tv_sec, info.stx_ctime.tv_nsec};
  Tell(mapped, fd, same);
  info.stx_dev_major = major(same.st_dev);
  info.stx_dev_minor = minor(same.st_dev);
  info.stx_ino = same.st_ino;
  info.stx_mode = static_cast<uint16_t>(same.st_mode);
  info.stx_uid = same.st_uid;
  info.stx_gid = same.st_gid;
  info.stx_nlink = static_cast<uint32_t>(same.st_nlink);
  info.stx_size = static_cast<uint64_t>(same.st_size);
  info.stx_blocks = static_cast<uint64_t>(same.st_blocks);
  info.stx_atime.tv_sec = same.st_atim.tv_sec;
  info.stx_atime.tv_nsec = static_cast<uint32_t>(same.st_atim.tv_nsec);
  info.stx_mtime.tv_sec = same.st_mtim.tv_sec;
  info.stx_mtime.tv_nsec = static_cast<uint32_t>(same.st_mtim.tv_nsec);
  info.stx_ctime.tv_sec = same.st_ctim.tv_sec;
  info.stx_ctime.tv_nsec = static_cast<uint32_t>(same.st_ctim.tv_nsec);
}

// A function that the C library has since 2.33: before, `otherwise`. So it is where Deja itself
// calls it. Another preloaded library's may be in a state in which it cannot be called:
// libfaketime's destructor removes a semaphore, and its functions wait for it.
template <typename Fn>
class LateFn {
 public:
  constexpr LateFn(const char* name, Fn otherwise) : name_(name), otherwise_(otherwise) {}
  template <typename... Args>
  int operator()(Args... args) {
    if (InsideDeja()) return otherwise_(args...);
    Fn function = slot_.load(std::memory_order_acquire);
    if (function == nullptr) {
      void* next = RealNext(name_);
      function = next != nullptr ? reinterpret_cast<Fn>(next) : otherwise_;
      slot_.store(function, std::memory_order_release);
    }
    return function(args...);
  }

 private:
  const char* name_;
  Fn otherwise_;
  std::atomic<Fn> slot_{nullptr};
};

// x86-64's structure is the kernel's.
int Checked(long answer) {
  if (answer >= 0) return 0;
  errno = static_cast<int>(-answer);
  return -1;
}

template <typename Info>
int KernelStatAt(int dirfd, const char* path, Info* info, int flags) {
  return Checked(RawSyscall(SYS_newfstatat, dirfd, reinterpret_cast<long>(path),
                            reinterpret_cast<long>(info), flags));
}

template <typename Info, int kFlags>
int KernelStat(const char* path, Info* info) {
  return KernelStatAt(AT_FDCWD, path, info, kFlags);
}

template <typename Info>
int KernelStatFd(int fd, Info* info) {
  return Checked(RawSyscall(SYS_fstat, fd, reinterpret_cast<long>(info)));
}

// `real(path)` looks.
template <typename Info, typename Real>
int Look(int dirfd, const char* path, int flags, Info* info, Real real) {
  const bool by_name = path != nullptr && path[0] != '\0';
  const bool follows = (flags & AT_SYMLINK_NOFOLLOW) == 0;
  MappedPath mapped(dirfd, path, follows ? FileUse::kLook : FileUse::kLookAtLink);
  if (mapped.refused()) return -1;
  const int rc = mapped.Answered(real(mapped.get()));
  if (rc == 0 && mapped.get() != path) Tell(mapped.get(), -1, *info);
  if (rc == 0 && !by_name && (flags & AT_EMPTY_PATH) != 0) Tell(nullptr, dirfd, *info);
  return rc;
}

template <typename Info>
int Told(int rc, int fd, Info* info) {
  if (rc == 0) Tell(nullptr, fd, *info);
  return rc;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

#define DEJA_STAT_HOOK(name, type, flags)                                                      \
  DEJA_EXPORT int name(const char* path, type* out) noexcept {                                 \
    static constinit LateFn<int (*)(const char*, type*)> real{#name, KernelStat<type, flags>}; \
    return Look(AT_FDCWD, path, flags, out, [out](const char* p) { return real(p, out); });    \
  }

#define DEJA_STAT_AT_HOOK(name, type)                                                        \
  DEJA_EXPORT int name(int dirfd, const char* path, type* out, int flags) noexcept {         \
    static constinit LateFn<int (*)(int, const char*, type*, int)> real{#name,               \
                                                                        KernelStatAt<type>}; \
    return Look(dirfd, path, flags, out,                                                     \
                [=](const char* p) { return real(dirfd, p, out, flags); });                  \
  }

#define DEJA_STAT_FD_HOOK(name, type)                                             \
  DEJA_EXPORT int name(int fd, type* out) noexcept {                              \
    static constinit LateFn<int (*)(int, type*)> real{#name, KernelStatFd<type>}; \
    return Told(real(fd, out), fd, out);                                          \
  }

// What stat was before glibc 2.33; old programs still call it.
#define DEJA_OLD_STAT_HOOK(name, type, flags)                                                      \
  DEJA_EXPORT int name(int version, const char* path, type* out) noexcept {                        \
    static constinit RealFn<int (*)(int, const char*, type*)> real{#name};                         \
    return Look(AT_FDCWD, path, flags, out, [=](const char* p) { return real(version, p, out); }); \
  }

#define DEJA_OLD_STAT_AT_HOOK(name, type)                                                         \
  DEJA_EXPORT int name(int version, int dirfd, const char* path, type* out, int flags) noexcept { \
    static constinit RealFn<int (*)(int, int, const char*, type*, int)> real{#name};              \
    return Look(dirfd, path, flags, out,                                                          \
                [=](const char* p) { return real(version, dirfd, p, out, flags); });              \
  }

#define DEJA_OLD_STAT_FD_HOOK(name, type)                          \
  DEJA_EXPORT int name(int version, int fd, type* out) noexcept {  \
    static constinit RealFn<int (*)(int, int, type*)> real{#name}; \
    return Told(real(version, fd, out), fd, out);                  \
  }

DEJA_STAT_HOOK(stat, struct stat, 0)
DEJA_STAT_HOOK(stat64, struct stat64, 0)
DEJA_STAT_HOOK(lstat, struct stat, AT_SYMLINK_NOFOLLOW)
DEJA_STAT_HOOK(lstat64, struct stat64, AT_SYMLINK_NOFOLLOW)
DEJA_STAT_AT_HOOK(fstatat, struct stat)
DEJA_STAT_AT_HOOK(fstatat64, struct stat64)
DEJA_STAT_FD_HOOK(fstat, struct stat)
DEJA_STAT_FD_HOOK(fstat64, struct stat64)
DEJA_OLD_STAT_HOOK(__xstat, struct stat, 0)
DEJA_OLD_STAT_HOOK(__xstat64, struct stat64, 0)
DEJA_OLD_STAT_HOOK(__lxstat, struct stat, AT_SYMLINK_NOFOLLOW)
DEJA_OLD_STAT_HOOK(__lxstat64, struct stat64, AT_SYMLINK_NOFOLLOW)
DEJA_OLD_STAT_AT_HOOK(__fxstatat, struct stat)
DEJA_OLD_STAT_AT_HOOK(__fxstatat64, struct stat64)
DEJA_OLD_STAT_FD_HOOK(__fxstat, struct stat)
DEJA_OLD_STAT_FD_HOOK(__fxstat64, struct stat64)

DEJA_EXPORT int statx(int dirfd, const char* path, int flags, unsigned mask,
                      struct statx* out) noexcept {
  static constinit RealFn<int (*)(int, const char*, int, unsigned, struct statx*)> real{"statx"};
  return Look(dirfd, path, flags, out,
              [=](const char* p) { return real(dirfd, p, flags, mask, out); });
}
