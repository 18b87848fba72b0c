// What happens to descriptors themselves: copies and ends.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "preload/hooks/child_signal_places.h"
#include "preload/hooks/descriptors/tracked.h"
#include "preload/hooks/export.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(int)> real_dup{"dup"};
constinit RealFn<int (*)(int, int)> real_dup2{"dup2"};
constinit RealFn<int (*)(int, int, int)> real_dup3{"dup3"};
constinit RealFn<int (*)(int, int, void*)> real_fcntl{"fcntl"};
constinit RealFn<int (*)(int, int, void*)> real_fcntl64{"fcntl64"};
constinit RealFn<int (*)(int)> real_close{"close"};
constinit RealFn<int (*)(unsigned, unsigned, int)> real_close_range{"close_range"};
constinit RealFn<void (*)(int)> real_closefrom{"closefrom"};
constinit RealFn<int (*)(FILE*)> real_fclose{"fclose"};

void NoteCopy(int from, int copy) {
  if (copy >= 0) FdTable::Copy(from, copy);
}

// The engine puts objects where they belong by the descriptors' numbers: before a copy moves them.
void PrepareCopy(int from, int to) {
  (void)Tracked(from);
  (void)Tracked(to);
}

bool IsCopyCommand(int command) {
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

// `fd` leads nowhere any more.
void Forget(int fd) {
  (void)Tracked(fd);
  FdTable::Set(fd, nullptr);
}

void ForgetRange(unsigned first, unsigned last) {
  for (unsigned fd = first; fd <= last && fd < FdTable::kSize; ++fd) Forget(static_cast<int>(fd));
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int dup(int fd) noexcept {
  int copy = real_dup(fd);
  NoteCopy(fd, copy);
  return copy;
}

DEJA_EXPORT int dup2(int fd, int to) noexcept {
  PrepareCopy(fd, to);
  int copy = real_dup2(fd, to);
  NoteCopy(fd, copy);
  return copy;
}

DEJA_EXPORT int dup3(int fd, int to, int flags) noexcept {
  PrepareCopy(fd, to);
  int copy = real_dup3(fd, to, flags);
  NoteCopy(fd, copy);
  return copy;
}

// The third argument of every command fits a pointer; one that takes none ignores it.
DEJA_EXPORT int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  int rc = real_fcntl(fd, command, argument);
  if (IsCopyCommand(command)) NoteCopy(fd, rc);
  return rc;
}

DEJA_EXPORT int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  int rc = real_fcntl64(fd, command, argument);
  if (IsCopyCommand(command)) NoteCopy(fd, rc);
  return rc;
}

// Before the real call: afterwards another thread may be given the same number. Whatever close
// returns, the descriptor is gone.
DEJA_EXPORT int close(int fd) {
  const FileCall counted;
  Forget(fd);
  return real_close(fd);
}

DEJA_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  constexpr int kOnlyMarks = 1 << 2;  // CLOSE_RANGE_CLOEXEC
  if ((flags & kOnlyMarks) == 0) ForgetRange(first, last);
  return real_close_range(first, last, flags);
}

DEJA_EXPORT void closefrom(int first) noexcept {
  ForgetRange(first < 0 ? 0 : static_cast<unsigned>(first), FdTable::kSize - 1);
  real_closefrom(first);
}

DEJA_EXPORT int fclose(FILE* stream) {
  if (stream != nullptr) {
    const int fd = fileno_unlocked(stream);
    FdObject* object = Tracked(fd);
    // What is still in its buffer is written while we know where it goes.
    const bool writes = object != nullptr && (object->kind() == FdObject::Kind::kConnection ||
                                              object->kind() == FdObject::Kind::kOwnFile);
    if (writes) fflush(stream);
    Forget(fd);
  }
  return real_fclose(stream);
}
