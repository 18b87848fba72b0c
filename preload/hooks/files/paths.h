// What the hooks of files by name share: asking the engine which file to use.
#ifndef DEJA_PRELOAD_HOOKS_FILES_PATHS_H_
#define DEJA_PRELOAD_HOOKS_FILES_PATHS_H_

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/connections.h"
#include "preload/calls/file_calls.h"
#include "preload/calls/socket_calls.h"
#include "preload/engine/engine.h"
#include "preload/files/environment_file.h"
#include "preload/hooks/input.h"
#include "preload/process/guard.h"

namespace deja::preload {

// The path to use instead of the program's, for one call. On the stack; any thread.
class MappedPath {
 public:
  // `open_flags`: open's, if that is what is about to happen; -1: something else is.
  MappedPath(int dirfd, const char* path, FileUse use, int open_flags = -1) : path_(path) {
    // Null and empty paths are the real function's business (errors, AT_EMPTY_PATH).
    if (path == nullptr || path[0] == 0) return;
    Engine* engine = EngineForHook();
    if (engine == nullptr) return;
    Guard guard;
    dirfd_ = dirfd;
    use_ = use;
    if (use == FileUse::kRead && open_flags != -1 && IsOwnEnvironmentFile(dirfd, path)) {
      lent_ = LendEnvironment(buffer_);
      if (lent_ >= 0) path_ = buffer_;
      return;
    }
    if (ConnectionLayer* layer = open_flags == -1 ? nullptr : engine->sockets->Connections()) {
      path_ = layer->BeforeOpen(dirfd, path, open_flags);
      refused_ = path_ == nullptr;
      if (path_ != path) return;
    }
    path_ = engine->files->MapPath(dirfd, path, use, buffer_);
    refused_ = path_ == nullptr;
    is_answered_ = path_ == path;
  }
  MappedPath(const char* path, FileUse use) : MappedPath(AT_FDCWD, path, use) {}
  ~MappedPath() {
    if (path_ != buffer_) return;
    const ErrnoKeeper keep;
    Guard guard;
    if (lent_ >= 0)
      close(lent_);
    else if (Engine* engine = GetEngine())
      engine->files->ReleasePath(path_);
  }
  MappedPath(const MappedPath&) = delete;
  MappedPath& operator=(const MappedPath&) = delete;

  // True if the call must fail with the errno that the engine has set.
  [[nodiscard]] bool refused() const { return refused_; }
  [[nodiscard]] const char* get() const { return path_; }
  // The call with this path has returned `rc`, which is given back: -1, with errno, or success.
  template <typename T>
  T Answered(T rc) {
    if (!is_answered_) return rc;
    const ErrnoKeeper keep;
    const int error = rc == static_cast<T>(-1) ? errno : 0;
    Guard guard;
    if (Engine* engine = GetEngine()) engine->files->OnAnswered(dirfd_, path_, use_, error);
    return rc;
  }

 private:
  const char* path_;
  int dirfd_ = AT_FDCWD;
  FileUse use_ = FileUse::kRead;
  bool refused_ = false;
  bool is_answered_ = false;  // the engine let the program's own path through
  int lent_ = -1;             // path_ leads to this descriptor
  char buffer_[PATH_MAX];     // written only when there is another path
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_FILES_PATHS_H_
