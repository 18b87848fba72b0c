// What a file says about itself, changed by a descriptor, and its extended attributes. A descriptor
// that only reads leads to the file itself in a replay: the change is made to the overlay's copy.
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <span>

#include "common/runtime/errno_keeper.h"
#include "preload/files/absolute_path.h"
#include "preload/hooks/export.h"
#include "preload/hooks/files/paths.h"
#include "preload/symbols/real_symbols.h"

using deja::preload::EngineForHook;
using deja::preload::FileUse;
using deja::preload::Guard;
using deja::preload::MappedPath;
using deja::preload::PathOfDescriptor;
using deja::preload::RealFn;

namespace {

constinit RealFn<int (*)(int, mode_t)> real_fchmod{"fchmod"};
constinit RealFn<int (*)(int, uid_t, gid_t)> real_fchown{"fchown"};
constinit RealFn<int (*)(int, const timespec*)> real_futimens{"futimens"};
constinit RealFn<int (*)(int, const timeval*)> real_futimes{"futimes"};
constinit RealFn<int (*)(int, const char*, const void*, size_t, int)> real_fsetxattr{"fsetxattr"};
constinit RealFn<int (*)(int, const char*)> real_fremovexattr{"fremovexattr"};
constinit RealFn<int (*)(const char*, mode_t)> real_chmod_of_copy{"chmod"};
constinit RealFn<int (*)(const char*, uid_t, gid_t)> real_chown_of_copy{"chown"};
constinit RealFn<int (*)(int, const char*, const timespec*, int)> real_utimensat_of_copy{
    "utimensat"};
constinit RealFn<int (*)(const char*, const timeval*)> real_utimes_of_copy{"utimes"};
constinit RealFn<int (*)(const char*, const char*, const void*, size_t, int)> real_setxattr{
    "setxattr"};
constinit RealFn<int (*)(const char*, const char*, const void*, size_t, int)> real_lsetxattr{
    "lsetxattr"};
constinit RealFn<int (*)(const char*, const char*)> real_removexattr{"removexattr"};
constinit RealFn<int (*)(const char*, const char*)> real_lremovexattr{"lremovexattr"};

constinit RealFn<ssize_t (*)(const char*, const char*, void*, size_t)> real_getxattr{"getxattr"};
constinit RealFn<ssize_t (*)(const char*, const char*, void*, size_t)> real_lgetxattr{"lgetxattr"};
constinit RealFn<ssize_t (*)(const char*, char*, size_t)> real_listxattr{"listxattr"};
constinit RealFn<ssize_t (*)(const char*, char*, size_t)> real_llistxattr{"llistxattr"};

// `by_path(path)` where the engine has another file than the one that `fd` leads to, else
// `by_number()`.
template <typename ByNumber, typename ByPath>
int ChangeOpen(int fd, ByNumber by_number, ByPath by_path) {
  if (EngineForHook() == nullptr) return by_number();
  char name[PATH_MAX];
  size_t size = 0;
  {
    const Guard guard;
    const deja::ErrnoKeeper keep;
    struct stat info {};
    size = PathOfDescriptor(fd, std::span(name).first(sizeof name - 1)).size();
    name[size] = '\0';
    // What has no name any more, or never had one, is the program's alone.
    if (size != 0 && (name[0] != '/' || stat(name, &info) != 0)) size = 0;
  }
  if (size == 0) return by_number();
  MappedPath mapped(name, FileUse::kMetadata);
  if (mapped.refused()) return -1;
  return mapped.get() == name ? by_number() : by_path(mapped.get());
}

}  // namespace

DEJA_EXPORT int fchmod(int fd, mode_t mode) noexcept {
  return ChangeOpen(
      fd, [&] { return real_fchmod(fd, mode); },
      [&](const char* path) { return real_chmod_of_copy(path, mode); });
}

DEJA_EXPORT int fchown(int fd, uid_t user, gid_t group) noexcept {
  return ChangeOpen(
      fd, [&] { return real_fchown(fd, user, group); },
      [&](const char* path) { return real_chown_of_copy(path, user, group); });
}

DEJA_EXPORT int futimens(int fd, const timespec* times) noexcept {
  return ChangeOpen(
      fd, [&] { return real_futimens(fd, times); },
      [&](const char* path) { return real_utimensat_of_copy(AT_FDCWD, path, times, 0); });
}

DEJA_EXPORT int futimes(int fd, const timeval* times) noexcept {
  return ChangeOpen(
      fd, [&] { return real_futimes(fd, times); },
      [&](const char* path) { return real_utimes_of_copy(path, times); });
}

DEJA_EXPORT int fsetxattr(int fd, const char* name, const void* value, size_t size,
                          int flags) noexcept {
  return ChangeOpen(
      fd, [&] { return real_fsetxattr(fd, name, value, size, flags); },
      [&](const char* path) { return real_setxattr(path, name, value, size, flags); });
}

DEJA_EXPORT int fremovexattr(int fd, const char* name) noexcept {
  return ChangeOpen(
      fd, [&] { return real_fremovexattr(fd, name); },
      [&](const char* path) { return real_removexattr(path, name); });
}

DEJA_EXPORT int setxattr(const char* path, const char* name, const void* value, size_t size,
                         int flags) noexcept {
  MappedPath mapped(path, FileUse::kMetadata);
  return mapped.refused() ? -1 : real_setxattr(mapped.get(), name, value, size, flags);
}

DEJA_EXPORT int lsetxattr(const char* path, const char* name, const void* value, size_t size,
                          int flags) noexcept {
  MappedPath mapped(path, FileUse::kMetadata);
  return mapped.refused() ? -1 : real_lsetxattr(mapped.get(), name, value, size, flags);
}

DEJA_EXPORT int removexattr(const char* path, const char* name) noexcept {
  MappedPath mapped(path, FileUse::kMetadata);
  return mapped.refused() ? -1 : real_removexattr(mapped.get(), name);
}

DEJA_EXPORT int lremovexattr(const char* path, const char* name) noexcept {
  MappedPath mapped(path, FileUse::kMetadata);
  return mapped.refused() ? -1 : real_lremovexattr(mapped.get(), name);
}

DEJA_EXPORT ssize_t getxattr(const char* path, const char* name, void* value,
                             size_t size) noexcept {
  MappedPath mapped(path, FileUse::kLook);
  return mapped.refused() ? -1 : real_getxattr(mapped.get(), name, value, size);
}

DEJA_EXPORT ssize_t lgetxattr(const char* path, const char* name, void* value,
                              size_t size) noexcept {
  MappedPath mapped(path, FileUse::kLook);
  return mapped.refused() ? -1 : real_lgetxattr(mapped.get(), name, value, size);
}

DEJA_EXPORT ssize_t listxattr(const char* path, char* names, size_t size) noexcept {
  MappedPath mapped(path, FileUse::kLook);
  return mapped.refused() ? -1 : real_listxattr(mapped.get(), names, size);
}

DEJA_EXPORT ssize_t llistxattr(const char* path, char* names, size_t size) noexcept {
  MappedPath mapped(path, FileUse::kLook);
  return mapped.refused() ? -1 : real_llistxattr(mapped.get(), names, size);
}
