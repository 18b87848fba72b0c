// An AppendFile in memory whose n-th operation can be made to fail.
#ifndef DEJA_TESTS_SUPPORT_MEMORY_APPEND_FILE_H_
#define DEJA_TESTS_SUPPORT_MEMORY_APPEND_FILE_H_

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "common/os/file.h"

namespace deja::format {

// What is to fail: operations count Append, Truncate and Sync together, from 0.
struct Faults {
  int fail_at = -1;  // this operation and, if `sticky`, all later ones
  bool sticky = true;
  size_t bytes_before = 0;  // of a failing Append get into the file
  int operations = 0;       // seen so far

  bool Hit() {
    const int now = operations++;
    return fail_at >= 0 && (now == fail_at || (sticky && now > fail_at));
  }
};

class MemoryAppendFile final : public AppendFile {
 public:
  explicit MemoryAppendFile(std::vector<std::byte>* bytes, Faults* faults = nullptr)
      : bytes_(bytes), faults_(faults) {}

  Status Append(std::span<const std::byte> first, std::span<const std::byte> second) override {
    const bool fails = faults_ != nullptr && faults_->Hit();
    size_t room = fails ? faults_->bytes_before : first.size() + second.size();
    for (const auto& part : {first, second}) {
      const auto some = part.first(std::min(room, part.size()));
      bytes_->insert(bytes_->end(), some.begin(), some.end());
      room -= some.size();
    }
    if (fails) return FailErrno("writing memory", ENOSPC);
    return {};
  }
  Status Truncate(uint64_t size) override {
    if (faults_ != nullptr && faults_->Hit()) return FailErrno("truncating memory", EIO);
    bytes_->resize(size);
    return {};
  }
  Status Sync() override {
    if (faults_ != nullptr && faults_->Hit()) return FailErrno("syncing memory", EIO);
    return {};
  }
  [[nodiscard]] uint64_t size() const override { return bytes_->size(); }

 private:
  std::vector<std::byte>* bytes_;
  Faults* faults_;
};

}  // namespace deja::format

#endif  // DEJA_TESTS_SUPPORT_MEMORY_APPEND_FILE_H_
