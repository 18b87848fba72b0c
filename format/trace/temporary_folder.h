// TempFolder: a folder that goes away with the process that made it, however that ends.
//
// The object removes it. Where a signal ends the process (SIGINT, SIGTERM, SIGHUP, unless they are
// ignored or handled), a thread removes it first, after the process's children. After SIGKILL the
// next command that makes one removes it. Each is locked while its process lives, and has a file in
// it that says what it is, so that nothing else is ever removed. Until it has that it is empty and
// has another name, "deja-making-" and six letters, and goes in the same way.
//
// Command-line processes only: it starts a thread and handles signals. Any thread.
#ifndef DEJA_FORMAT_TRACE_TEMPORARY_FOLDER_H_
#define DEJA_FORMAT_TRACE_TEMPORARY_FOLDER_H_

#include <memory>
#include <string>
#include <utility>

#include "common/result.h"

namespace deja::format {

class TempFolder {
 public:
  // In `base`, or $TMPDIR or /tmp; `stem` is the beginning of its name, "deja-" and perhaps more.
  static Result<std::unique_ptr<TempFolder>> Make(const std::string& stem = "deja-",
                                                  const std::string& base = "");
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  TempFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;
  int lock_;
};

// Removes those whose processes were killed, where Make makes them by itself. Make does so, too.
void RemoveAbandonedFolders();

// Returns if no signal is ending this process; else it does, when its folders are gone. For a
// thread that would otherwise say how things ended.
void AwaitEndBySignal();

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_TEMPORARY_FOLDER_H_
