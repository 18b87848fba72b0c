// Files that this process, or the one that it was forked from, has opened for writing: their
// contents are the run's own, as long as nobody else changes them.
//
// An OwnFile stands for a file that this process may write to. When the last descriptor with which
// it may is closed (opened_output.h) it looks how the file is left; a file that is in another state
// at the next open was changed by another process: another rank, or one that is not recorded.
//
// Never freed. Any thread, inside the guard; no locks.
#ifndef DEJA_RECORDER_FILES_OWN_FILES_H_
#define DEJA_RECORDER_FILES_OWN_FILES_H_

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

namespace deja::recorder {

class OwnFile {
 public:
  explicit OwnFile(const struct stat& info, uint64_t key)
      : device_(info.st_dev), inode_(info.st_ino), key_(key) {}

  // The file behind `fd`, which may write to it, until OnClosed; null if there is no room.
  static OwnFile* Mark(const struct stat& info, int fd);
  // `path` relative to `fd`; empty: `fd` itself. Null: the file is not the run's own.
  static OwnFile* Find(const struct stat& info, int fd, const char* path = "");

  // False while a descriptor of this process may write to it.
  [[nodiscard]] bool IsChangedByOthers(const struct stat& now) const;

  // One of those that may write is about to be closed, or, by dup2, has been.
  void OnClosed(int fd);

 private:
  dev_t device_;
  ino_t inode_;
  uint64_t key_;
  std::atomic<uint32_t> writers_{0};
  std::atomic<uint64_t> left_{0};  // a hash of its state; 0: it is being written
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_OWN_FILES_H_
