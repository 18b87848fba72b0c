// Files by name, other than opening and looking at them: one line a function.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "preload/calls/file_calls.h"
#include "preload/hooks/export.h"
#include "preload/hooks/files/paths.h"
#include "preload/symbols/real_symbols.h"

using deja::preload::Engine;
using deja::preload::EngineForHook;
using deja::preload::FileUse;
using deja::preload::Guard;
using deja::preload::MappedPath;
using deja::preload::RealFn;

// A function whose first parameter is the path.
#define DEJA_PATH_HOOK(name, use, parameters, arguments)                            \
  DEJA_EXPORT int name(const char* path DEJA_REST parameters) noexcept {            \
    static constinit RealFn<int (*)(const char* DEJA_REST parameters)> real{#name}; \
    MappedPath mapped(path, FileUse::use);                                          \
    if (mapped.refused()) return -1;                                                \
    return mapped.Answered(real(mapped.get() DEJA_REST arguments));                 \
  }

// One that has a directory's descriptor before it.
#define DEJA_PATH_AT_HOOK(name, use, parameters, arguments)                              \
  DEJA_EXPORT int name(int dirfd, const char* path DEJA_REST parameters) noexcept {      \
    static constinit RealFn<int (*)(int, const char* DEJA_REST parameters)> real{#name}; \
    MappedPath mapped(dirfd, path, FileUse::use);                                        \
    if (mapped.refused()) return -1;                                                     \
    return mapped.Answered(real(dirfd, mapped.get() DEJA_REST arguments));               \
  }

// The parameters in brackets, with a comma in front if there are any.
#define DEJA_REST(...) __VA_OPT__(, ) __VA_ARGS__

// clang-format off
DEJA_PATH_HOOK(unlink, kRemove, (), ())
DEJA_PATH_HOOK(remove, kRemove, (), ())
DEJA_PATH_HOOK(rmdir, kRemove, (), ())
DEJA_PATH_HOOK(mkdir, kMakeDir, (mode_t mode), (mode))
DEJA_PATH_HOOK(mkfifo, kCreate, (mode_t mode), (mode))
DEJA_PATH_HOOK(mknod, kCreate, (mode_t mode, dev_t device), (mode, device))
DEJA_PATH_HOOK(truncate, kWrite, (off_t size), (size))
DEJA_PATH_HOOK(truncate64, kWrite, (off64_t size), (size))
DEJA_PATH_HOOK(chmod, kMetadata, (mode_t mode), (mode))
DEJA_PATH_HOOK(chown, kMetadata, (uid_t user, gid_t group), (user, group))
DEJA_PATH_HOOK(lchown, kMetadata, (uid_t user, gid_t group), (user, group))
DEJA_PATH_HOOK(utimes, kMetadata, (const timeval* times), (times))
DEJA_PATH_HOOK(utime, kMetadata, (const utimbuf* times), (times))
DEJA_PATH_HOOK(lutimes, kMetadata, (const timeval* times), (times))
DEJA_PATH_HOOK(statfs, kLook, (struct statfs* info), (info))
DEJA_PATH_HOOK(statfs64, kLook, (struct statfs64* info), (info))
DEJA_PATH_HOOK(statvfs, kLook, (struct statvfs* info), (info))
DEJA_PATH_HOOK(statvfs64, kLook, (struct statvfs64* info), (info))
DEJA_PATH_HOOK(access, kLook, (int mode), (mode))
DEJA_PATH_HOOK(euidaccess, kLook, (int mode), (mode))
DEJA_PATH_HOOK(eaccess, kLook, (int mode), (mode))
DEJA_PATH_HOOK(chdir, kRead, (), ())

DEJA_PATH_AT_HOOK(unlinkat, kRemove, (int flags), (flags))
DEJA_PATH_AT_HOOK(mkdirat, kMakeDir, (mode_t mode), (mode))
DEJA_PATH_AT_HOOK(mkfifoat, kCreate, (mode_t mode), (mode))
DEJA_PATH_AT_HOOK(mknodat, kCreate, (mode_t mode, dev_t device), (mode, device))
DEJA_PATH_AT_HOOK(fchmodat, kMetadata, (mode_t mode, int flags), (mode, flags))
DEJA_PATH_AT_HOOK(fchownat, kMetadata, (uid_t user, gid_t group, int flags), (user, group, flags))
DEJA_PATH_AT_HOOK(utimensat, kMetadata, (const timespec* times, int flags), (times, flags))
DEJA_PATH_AT_HOOK(futimesat, kMetadata, (const timeval* times), (times))
DEJA_PATH_AT_HOOK(faccessat, kLook, (int mode, int flags), (mode, flags))
// clang-format on

// ---- two names

namespace {

// What happens to the first name; the second is created.
template <typename Real>
int WithTwoPaths(int from_dir, const char* from, FileUse from_use, int to_dir, const char* to,
                 Real real) {
  MappedPath source(from_dir, from, from_use);
  if (source.refused()) return -1;
  MappedPath target(to_dir, to, FileUse::kCreate);
  return target.refused() ? -1 : source.Answered(real(source.get(), target.get()));
}

constinit RealFn<int (*)(const char*, const char*)> real_rename{"rename"};
constinit RealFn<int (*)(int, const char*, int, const char*)> real_renameat{"renameat"};
constinit RealFn<int (*)(int, const char*, int, const char*, unsigned)> real_renameat2{"renameat2"};
constinit RealFn<int (*)(const char*, const char*)> real_link{"link"};
constinit RealFn<int (*)(int, const char*, int, const char*, int)> real_linkat{"linkat"};
constinit RealFn<int (*)(const char*, const char*)> real_symlink{"symlink"};
constinit RealFn<int (*)(const char*, int, const char*)> real_symlinkat{"symlinkat"};
constinit RealFn<ssize_t (*)(const char*, char*, size_t)> real_readlink{"readlink"};
constinit RealFn<ssize_t (*)(const char*, char*, size_t, size_t)> real_readlink_chk{
    "__readlink_chk"};
constinit RealFn<ssize_t (*)(int, const char*, char*, size_t)> real_readlinkat{"readlinkat"};
constinit RealFn<char* (*)(const char*, char*)> real_realpath{"realpath"};
constinit RealFn<char* (*)(const char*)> real_canonicalize{"canonicalize_file_name"};
constinit RealFn<char* (*)(char*, size_t)> real_getcwd{"getcwd"};
constinit RealFn<char* (*)(char*, size_t, size_t)> real_getcwd_chk{"__getcwd_chk"};
constinit RealFn<char* (*)()> real_get_current_dir_name{"get_current_dir_name"};
constinit RealFn<char* (*)(char*)> real_getwd{"getwd"};
constinit RealFn<ssize_t (*)(int, const char*, char*, size_t, size_t)> real_readlinkat_chk{
    "__readlinkat_chk"};

// The program's own name for a path that the kernel gave, in place.
char* Told(char* path) {
  Engine* engine = path != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return path;
  Guard guard;
  path[engine->files->UnmapPath(path, strlen(path))] = '\0';
  return path;
}

// The same for a symbolic link's text: `real(out, size)` reads it. The kernel's own links
// (/proc/self/cwd, /proc/self/fd/N) name files as they are.
template <typename Real>
ssize_t ToldLink(char* out, size_t size, Real real) {
  ssize_t n = real(out, size);
  Engine* engine = n > 0 && out[0] == '/' ? EngineForHook() : nullptr;
  if (engine == nullptr) return n;
  Guard guard;
  if (static_cast<size_t>(n) < size) {
    // What the program had after its end is still there for it to be the end.
    const size_t told = engine->files->UnmapPath(out, static_cast<size_t>(n));
    memset(out + told, 0, static_cast<size_t>(n) - told);
    return static_cast<ssize_t>(told);
  }
  char whole[PATH_MAX];  // its end may have been cut off
  n = real(whole, sizeof whole);
  if (n <= 0) return n;
  const size_t told = std::min(engine->files->UnmapPath(whole, static_cast<size_t>(n)), size);
  memcpy(out, whole, told);
  return static_cast<ssize_t>(told);
}
constinit RealFn<char* (*)(const char*, char*, size_t)> real_realpath_chk{"__realpath_chk"};

}  // namespace

DEJA_EXPORT int rename(const char* from, const char* to) noexcept {
  return WithTwoPaths(AT_FDCWD, from, FileUse::kRemove, AT_FDCWD, to,
                      [](const char* f, const char* t) { return real_rename(f, t); });
}

DEJA_EXPORT int renameat(int from_dir, const char* from, int to_dir, const char* to) noexcept {
  return WithTwoPaths(
      from_dir, from, FileUse::kRemove, to_dir, to,
      [&](const char* f, const char* t) { return real_renameat(from_dir, f, to_dir, t); });
}

DEJA_EXPORT int renameat2(int from_dir, const char* from, int to_dir, const char* to,
                          unsigned flags) noexcept {
  return WithTwoPaths(
      from_dir, from, FileUse::kRemove, to_dir, to,
      [&](const char* f, const char* t) { return real_renameat2(from_dir, f, to_dir, t, flags); });
}

// Both names are one file afterwards, so what is done to the new one is done to the old one.
DEJA_EXPORT int link(const char* from, const char* to) noexcept {
  return WithTwoPaths(AT_FDCWD, from, FileUse::kWrite, AT_FDCWD, to,
                      [](const char* f, const char* t) { return real_link(f, t); });
}

DEJA_EXPORT int linkat(int from_dir, const char* from, int to_dir, const char* to,
                       int flags) noexcept {
  return WithTwoPaths(
      from_dir, from, FileUse::kWrite, to_dir, to,
      [&](const char* f, const char* t) { return real_linkat(from_dir, f, to_dir, t, flags); });
}

// What a symbolic link says is not looked at.
DEJA_EXPORT int symlink(const char* text, const char* path) noexcept {
  MappedPath mapped(path, FileUse::kCreate);
  return mapped.refused() ? -1 : real_symlink(text, mapped.get());
}

DEJA_EXPORT int symlinkat(const char* text, int dirfd, const char* path) noexcept {
  MappedPath mapped(dirfd, path, FileUse::kCreate);
  return mapped.refused() ? -1 : real_symlinkat(text, dirfd, mapped.get());
}

DEJA_EXPORT ssize_t readlink(const char* path, char* out, size_t size) noexcept {
  MappedPath mapped(path, FileUse::kLookAtLink);
  if (mapped.refused()) return -1;
  return ToldLink(out, size, [&](char* o, size_t s) { return real_readlink(mapped.get(), o, s); });
}

DEJA_EXPORT ssize_t __readlink_chk(const char* path, char* out, size_t size, size_t room) noexcept {
  if (size > room) return real_readlink_chk(path, out, size, room);  // which ends the program
  return readlink(path, out, size);
}

DEJA_EXPORT ssize_t readlinkat(int dirfd, const char* path, char* out, size_t size) noexcept {
  MappedPath mapped(dirfd, path, FileUse::kLookAtLink);
  if (mapped.refused()) return -1;
  return ToldLink(out, size,
                  [&](char* o, size_t s) { return real_readlinkat(dirfd, mapped.get(), o, s); });
}

DEJA_EXPORT ssize_t __readlinkat_chk(int dirfd, const char* path, char* out, size_t size,
                                     size_t room) noexcept {
  if (size > room) return real_readlinkat_chk(dirfd, path, out, size, room);
  return readlinkat(dirfd, path, out, size);
}

DEJA_EXPORT char* realpath(const char* path, char* out) noexcept {
  MappedPath mapped(path, FileUse::kResolve);
  return mapped.refused() ? nullptr : Told(real_realpath(mapped.get(), out));
}

DEJA_EXPORT char* __realpath_chk(const char* path, char* out, size_t room) noexcept {
  MappedPath mapped(path, FileUse::kResolve);
  return mapped.refused() ? nullptr : Told(real_realpath_chk(mapped.get(), out, room));
}

DEJA_EXPORT char* canonicalize_file_name(const char* path) noexcept {
  MappedPath mapped(path, FileUse::kResolve);
  return mapped.refused() ? nullptr : Told(real_canonicalize(mapped.get()));
}

// The folder may have a longer name than the one that the program gets.
DEJA_EXPORT char* getcwd(char* out, size_t size) noexcept {
  if (out == nullptr || EngineForHook() == nullptr) return Told(real_getcwd(out, size));
  char whole[PATH_MAX];
  if (Told(real_getcwd(whole, sizeof whole)) == nullptr) return nullptr;
  const size_t length = strlen(whole);
  if (size == 0 || length + 1 > size) {
    errno = size == 0 ? EINVAL : ERANGE;
    return nullptr;
  }
  memcpy(out, whole, length + 1);
  return out;
}

DEJA_EXPORT char* __getcwd_chk(char* out, size_t size, size_t room) noexcept {
  if (size > room) return real_getcwd_chk(out, size, room);
  return getcwd(out, size);
}

// $PWD where that is true, which is the program's own word.
DEJA_EXPORT char* get_current_dir_name() noexcept {
  return Told(real_get_current_dir_name());
}

DEJA_EXPORT char* getwd(char* out) noexcept {
  return Told(real_getwd(out));
}
