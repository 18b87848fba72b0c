// Opening files: by the variants of open, and as streams.
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "preload/calls/connections.h"
#include "preload/calls/file_calls.h"
#include "preload/calls/socket_calls.h"
#include "preload/hooks/child_signal_places.h"
#include "preload/hooks/descriptors/entropy_files.h"
#include "preload/hooks/export.h"
#include "preload/hooks/files/paths.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

using OpenFn = int (*)(const char*, int, mode_t);
using OpenAtFn = int (*)(int, const char*, int, mode_t);
using FopenFn = FILE* (*)(const char*, const char*);
using FreopenFn = FILE* (*)(const char*, const char*, FILE*);

constinit RealFn<OpenFn> real_open{"open"};
constinit RealFn<OpenFn> real_open64{"open64"};
constinit RealFn<OpenAtFn> real_openat{"openat"};
constinit RealFn<OpenAtFn> real_openat64{"openat64"};
constinit RealFn<int (*)(const char*, int)> real_open_2{"__open_2"};
constinit RealFn<int (*)(const char*, int)> real_open64_2{"__open64_2"};
constinit RealFn<int (*)(int, const char*, int)> real_openat_2{"__openat_2"};
constinit RealFn<int (*)(int, const char*, int)> real_openat64_2{"__openat64_2"};
constinit RealFn<int (*)(const char*, mode_t)> real_creat{"creat"};
constinit RealFn<int (*)(const char*, mode_t)> real_creat64{"creat64"};
constinit RealFn<FopenFn> real_fopen{"fopen"};
constinit RealFn<FopenFn> real_fopen64{"fopen64"};
constinit RealFn<FreopenFn> real_freopen{"freopen"};
constinit RealFn<FreopenFn> real_freopen64{"freopen64"};

bool TakesMode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

FileUse UseOf(int flags) {
  if (TakesMode(flags)) return FileUse::kCreate;
  bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  return writes && (flags & O_PATH) == 0 ? FileUse::kWrite : FileUse::kRead;
}

FileUse UseOf(const char* mode) {
  if (mode == nullptr) return FileUse::kRead;
  if (mode[0] == 'w' || mode[0] == 'a') return FileUse::kCreate;
  return std::strchr(mode, '+') != nullptr ? FileUse::kWrite : FileUse::kRead;
}

// What open's flags would be.
int FlagsOf(const char* mode) {
  if (mode == nullptr) return O_RDONLY;
  const bool both = std::strchr(mode, '+') != nullptr;
  if (mode[0] == 'r') return both ? O_RDWR : O_RDONLY;
  return (both ? O_RDWR : O_WRONLY) | O_CREAT | (mode[0] == 'w' ? O_TRUNC : O_APPEND);
}

// `fd`, just opened from `path`, leads there now. -1, and ENXIO: a FIFO without a reader.
void NoteOpened(int dirfd, const char* path, int fd, int flags) {
  const bool counts = fd >= 0 || (errno == ENXIO && path != nullptr);
  if (!counts || InsideDeja() || IsBorrowedMemory() || IsEngineSwitchedOff()) return;
  FdObject* object = fd >= 0 ? EntropyFileOf(path, fd) : nullptr;
  Engine* engine = object == nullptr ? GetEngine() : nullptr;
  if (engine != nullptr) {
    const Guard guard;
    if (fd >= 0) object = engine->files->OnOpened(dirfd, path, fd, flags);
    if (ConnectionLayer* layer = object == nullptr ? engine->sockets->Connections() : nullptr)
      object = layer->AfterOpen(dirfd, path, fd, flags);
  }
  if (object != nullptr) WatchStreams();
  FdTable::Set(fd, object);
}

// `path` was not opened. A descriptor to use in its place, or -1.
int NoteFailed(int dirfd, const char* path, int flags) {
  const bool is_refused = errno == EACCES && path != nullptr;
  const bool is_taken = errno == EEXIST && (flags & O_EXCL) != 0;
  if ((!is_refused && !is_taken) || InsideDeja() || IsBorrowedMemory()) return -1;
  Engine* engine = GetEngine();
  if (engine == nullptr) return -1;
  const Guard guard;
  if (is_refused) return engine->files->OnOpenRefused(dirfd, path, flags);
  engine->files->OnTaken(dirfd, path);
  return -1;
}

// `real(path)` opens.
template <typename Real>
int OpenAt(int dirfd, const char* path, int flags, Real real) {
  const FileCall counted;
  MappedPath mapped(dirfd, path, UseOf(flags), flags);
  if (mapped.refused()) return -1;
  int fd = mapped.Answered(real(mapped.get()));
  if (fd < 0) fd = NoteFailed(dirfd, path, flags);
  NoteOpened(dirfd, path, fd, flags);
  return fd;
}

template <typename Real>
FILE* OpenStream(const char* path, const char* mode, Real real) {
  MappedPath mapped(AT_FDCWD, path, UseOf(mode), FlagsOf(mode));
  if (mapped.refused()) return nullptr;
  FILE* stream = real(mapped.get());
  mapped.Answered(stream == nullptr ? -1 : 0);
  if (stream == nullptr)
    if (const int fd = NoteFailed(AT_FDCWD, path, FlagsOf(mode)); fd >= 0)
      stream = fdopen(fd, mode);
  if (stream != nullptr) NoteOpened(AT_FDCWD, path, fileno_unlocked(stream), FlagsOf(mode));
  return stream;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

#define DEJA_MODE_ARGUMENT(flags) \
  mode_t mode = 0;                \
  if (TakesMode(flags)) {         \
    va_list list;                 \
    va_start(list, flags);        \
    mode = va_arg(list, mode_t);  \
    va_end(list);                 \
  }

DEJA_EXPORT int open(const char* path, int flags, ...) {
  DEJA_MODE_ARGUMENT(flags)
  return OpenAt(AT_FDCWD, path, flags, [&](const char* p) { return real_open(p, flags, mode); });
}

DEJA_EXPORT int open64(const char* path, int flags, ...) {
  DEJA_MODE_ARGUMENT(flags)
  return OpenAt(AT_FDCWD, path, flags, [&](const char* p) { return real_open64(p, flags, mode); });
}

DEJA_EXPORT int openat(int dirfd, const char* path, int flags, ...) {
  DEJA_MODE_ARGUMENT(flags)
  return OpenAt(dirfd, path, flags,
                [&](const char* p) { return real_openat(dirfd, p, flags, mode); });
}

DEJA_EXPORT int openat64(int dirfd, const char* path, int flags, ...) {
  DEJA_MODE_ARGUMENT(flags)
  return OpenAt(dirfd, path, flags,
                [&](const char* p) { return real_openat64(dirfd, p, flags, mode); });
}

// What fortified programs call when they pass no mode.
DEJA_EXPORT int __open_2(const char* path, int flags) {
  return OpenAt(AT_FDCWD, path, flags, [&](const char* p) { return real_open_2(p, flags); });
}

DEJA_EXPORT int __open64_2(const char* path, int flags) {
  return OpenAt(AT_FDCWD, path, flags, [&](const char* p) { return real_open64_2(p, flags); });
}

DEJA_EXPORT int __openat_2(int dirfd, const char* path, int flags) {
  return OpenAt(dirfd, path, flags, [&](const char* p) { return real_openat_2(dirfd, p, flags); });
}

DEJA_EXPORT int __openat64_2(int dirfd, const char* path, int flags) {
  return OpenAt(dirfd, path, flags,
                [&](const char* p) { return real_openat64_2(dirfd, p, flags); });
}

DEJA_EXPORT int creat(const char* path, mode_t mode) {
  return OpenAt(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC,
                [&](const char* p) { return real_creat(p, mode); });
}

DEJA_EXPORT int creat64(const char* path, mode_t mode) {
  return OpenAt(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC,
                [&](const char* p) { return real_creat64(p, mode); });
}

DEJA_EXPORT FILE* fopen(const char* path, const char* mode) {
  return OpenStream(path, mode, [&](const char* p) { return real_fopen(p, mode); });
}

DEJA_EXPORT FILE* fopen64(const char* path, const char* mode) {
  return OpenStream(path, mode, [&](const char* p) { return real_fopen64(p, mode); });
}

DEJA_EXPORT FILE* freopen(const char* path, const char* mode, FILE* stream) {
  return OpenStream(path, mode, [&](const char* p) { return real_freopen(p, mode, stream); });
}

DEJA_EXPORT FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  return OpenStream(path, mode, [&](const char* p) { return real_freopen64(p, mode, stream); });
}
