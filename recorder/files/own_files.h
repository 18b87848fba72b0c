// Files that this process, or its parent before the fork, has opened for writing. Their contents
// are the run's own, as long as no other process changes them.
//
// An OwnFile stands for a file that this process may write to. When the last descriptor that allows
// it is closed (opened_output.h), it notes the file's state. If the state differs at the next open,
// another process has changed the file: another rank, or one that is not recorded.
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
