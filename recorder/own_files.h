// Files that this process, or the one that it was forked from, has opened for writing: their
// contents are the run's own, as long as nobody else changes them.
//
// An OwnFile stands for a file and for all descriptors of this process that may write to it. When
// the last of them is closed it looks how the file is left; a file that is in another state at the
// next open was changed by another process: another rank, or one that is not recorded.
//
// Never freed. Any thread, inside the guard; no locks.
#ifndef DEJA_RECORDER_OWN_FILES_H_
#define DEJA_RECORDER_OWN_FILES_H_

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "preload/hooks/fd_table.h"

namespace deja::recorder {

class OwnFile final : public preload::FdObject {
 public:
  explicit OwnFile(const struct stat& info, uint64_t key)
      : FdObject(Kind::kOwnFile), device_(info.st_dev), inode_(info.st_ino), key_(key) {}

  // The file behind `fd`, which may write to it, from now on; null if there is no room.
  static OwnFile* Mark(const struct stat& info, int fd);
  // `path` relative to `fd`; empty: `fd` itself. Null: the file is not the run's own.
  static OwnFile* Find(const struct stat& info, int fd, const char* path = "");

  // False while a descriptor of this process may write to it.
  [[nodiscard]] bool IsChangedByOthers(const struct stat& now) const;

  void OnUnused(int fd) override;

 private:
  dev_t device_;
  ino_t inode_;
  uint64_t key_;
  std::atomic<uint64_t> left_{0};  // a hash of its state; 0: it is being written
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_OWN_FILES_H_
