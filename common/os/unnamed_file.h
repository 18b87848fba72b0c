// A file without a name, for more than memory should hold: it is gone with its descriptor.
//
// In a folder of the caller's, or the first of $TMPDIR, /var/tmp and /tmp that takes one. Owns its
// descriptor (close-on-exec, out of a program's way as those of other files). One thread at a time.
#ifndef DEJA_COMMON_OS_UNNAMED_FILE_H_
#define DEJA_COMMON_OS_UNNAMED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/result.h"

namespace deja {

class UnnamedFile {
 public:
  // Makes an empty file in `folder`; empty: in a folder for temporary files. An error if there can
  // be none.
  static Result<std::unique_ptr<UnnamedFile>> Make(const std::string& folder = {});
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  // Writes at the end. Errors are the file system's.
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
