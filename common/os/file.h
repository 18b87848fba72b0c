// The two files that the trace needs: one that only grows, one that is read at offsets.
//
// Interfaces, so that tests can make any write fail. The POSIX implementations own their
// descriptor (close-on-exec). AppendFile: one thread. ReadFile: any thread. Errors: kIo with errno,
// kNotFound where a file is not there.
#ifndef DEJA_COMMON_OS_FILE_H_
#define DEJA_COMMON_OS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace deja {

class AppendFile {
 public:
  virtual ~AppendFile() = default;
  // Writes `first` and then `second` at the end. On failure part of them may be in the file.
  virtual Status Append(std::span<const std::byte> first, std::span<const std::byte> second) = 0;
  // Cuts the file to `size` bytes; what is appended next comes there.
  virtual Status Truncate(uint64_t size) = 0;
  virtual Status Sync() = 0;
  [[nodiscard]] virtual uint64_t size() const = 0;
};

// Writes both spans at `size` of the open file `fd` and moves `size` on by what was written, also
// on failure. `path` is for the message.
Status WriteBoth(int fd, const std::string& path, uint64_t& size, std::span<const std::byte> first,
                 std::span<const std::byte> second);

// Creates `path`, which must not exist.
Result<std::unique_ptr<AppendFile>> CreateAppendFile(const std::string& path);
// Opens `path`, which must exist, to append to it.
Result<std::unique_ptr<AppendFile>> OpenAppendFile(const std::string& path);

class ReadFile {
 public:
  virtual ~ReadFile() = default;
  // Fills `out` from `offset`; fewer bytes than asked for only where the file ends.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const = 0;
  [[nodiscard]] virtual uint64_t size() const = 0;            // when the file was opened
  [[nodiscard]] virtual const std::string& name() const = 0;  // for messages
  // The first place from `from` on that is not known to be zeros which take no room on the disk;
  // size() if there is none.
  [[nodiscard]] virtual uint64_t NextData(uint64_t from) const { return from; }
  // Bytes that it takes on the disk, about: a file with holes is smaller than its length.
  [[nodiscard]] virtual uint64_t stored_bytes() const { return size(); }
};

// Regular files only, without following a symbolic link in the last component.
Result<std::unique_ptr<ReadFile>> OpenReadFile(const std::string& path);
// A file in memory.
std::unique_ptr<ReadFile> MakeMemoryFile(std::string name, std::vector<std::byte> bytes);

}  // namespace deja

#endif  // DEJA_COMMON_OS_FILE_H_
