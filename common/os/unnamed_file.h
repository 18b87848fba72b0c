// A file without a name, for more than memory should hold: it is gone with its descriptor.
//
// In $TMPDIR, /var/tmp or /tmp, the first that takes one. Owns its descriptor (close-on-exec). One
// thread at a time. Not for a user's process, whose descriptors have numbers.
#ifndef DEJA_COMMON_OS_UNNAMED_FILE_H_
#define DEJA_COMMON_OS_UNNAMED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/result.h"

namespace deja {

class UnnamedFile {
 public:
  static Result<std::unique_ptr<UnnamedFile>> Make();
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  Status Append(std::span<const std::byte> bytes);
  // Fills `out`; an error if the file ends before.
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const;
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  explicit UnnamedFile(int fd) : fd_(fd) {}
  int fd_;
  uint64_t size_ = 0;
};

}  // namespace deja

#endif  // DEJA_COMMON_OS_UNNAMED_FILE_H_
