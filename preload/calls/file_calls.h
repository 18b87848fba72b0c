// FileCalls: what an engine does with names of files, folders and mappings.
//
// Any thread, with the guard held. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_FILE_CALLS_H_
#define DEJA_PRELOAD_CALLS_FILE_CALLS_H_

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "preload/engine/fd_table.h"

namespace deja::preload {

class FolderLayer;

// What a file-system call is about to do; a replay sends writes to its overlay. Use kLook asks
// about a name without opening it; kLookAtLink about a symbolic link itself. kResolve asks where
// all links on its way lead; kMetadata changes mode, owner or times.
enum class FileUse : uint8_t {
  kRead,
  kWrite,
  kCreate,
  kRemove,
  kMakeDir,
  kMetadata,
  kLook,
  kLookAtLink,
  kResolve,
};

// The name is about to be opened, or what opens as little as that does.
constexpr bool Opens(FileUse use) {
  return use == FileUse::kRead || use == FileUse::kWrite || use == FileUse::kCreate;
}

class FileCalls {
 public:
  // The path to use instead of `path` (relative to `dirfd`, as in openat), written to `buffer`; or
  // `path` itself when the call may go ahead as it is; or null with errno set when it may not. The
  // recorder returns `path`; a replay sends writes to its overlay.
  virtual const char* MapPath(int dirfd, const char* path, FileUse use, std::span<char> buffer) = 0;
  // The program has opened `path`, relative to `dirfd`, as `fd` with open's `flags`. What the
  // descriptor leads to (hooks/fd_table.h); null: nothing that must be watched.
  virtual FdObject* OnOpened(int dirfd, const char* path, int fd, int flags) {
    return (void)dirfd, (void)path, (void)fd, (void)flags, nullptr;
  }
  // The system has refused to open `path` (EACCES). A new descriptor to use in its place, or -1.
  virtual int OnOpenRefused(int dirfd, const char* path, int flags) {
    (void)dirfd, (void)path, (void)flags;
    return -1;
  }
  // The system has answered a call about `path`, relative to `dirfd`, that MapPath let go ahead as
  // it was. `error`: its errno, or 0.
  virtual void OnAnswered(int dirfd, const char* path, FileUse use, int error) {
    (void)dirfd, (void)path, (void)use, (void)error;
  }
  // The program would have made `path`, relative to `dirfd`, but it was there (O_EXCL).
  virtual void OnTaken(int dirfd, const char* path) { (void)dirfd, (void)path; }
  // The answer to the program about the file `mapped`, a result of MapPath, or, if that is null,
  // about the file of `fd`; `info` is the real answer.
  virtual void OnStat([[maybe_unused]] const char* mapped, [[maybe_unused]] int fd,
                      [[maybe_unused]] struct stat& info) {}
  // MapPath's result is not needed any more.
  virtual void ReleasePath(const char* mapped) { (void)mapped; }
  // The answer to the program instead of `path`, an absolute path of `size` bytes (no terminator)
  // that the kernel gave. It is written over `path` and not longer. Returns its size.
  virtual size_t UnmapPath(char* path, size_t size) { return (void)path, size; }
  // The part that lists folders (folders.h); null: the C library does.
  virtual FolderLayer* Folders() { return nullptr; }
  // Memory is about to be unmapped, while there are mappings of input files (mapped_inputs.h).
  virtual void BeforeUnmap(void* memory, size_t size) { (void)memory, (void)size; }

 protected:
  ~FileCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_FILE_CALLS_H_
