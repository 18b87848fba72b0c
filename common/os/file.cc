#include "common/os/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/os/folder_names.h"
#include "common/os/own_descriptor.h"

namespace deja {
namespace {

class PosixAppendFile final : public AppendFile {
 public:
  PosixAppendFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  ~PosixAppendFile() override { close(fd_); }
  PosixAppendFile(const PosixAppendFile&) = delete;
  PosixAppendFile& operator=(const PosixAppendFile&) = delete;

  Status Append(std::span<const std::byte> first, std::span<const std::byte> second) override {
    return WriteBoth(fd_, path_, size_, first, second);
  }

  Status Truncate(uint64_t size) override {
    if (ftruncate(fd_, static_cast<off_t>(size)) != 0) {
      return FailErrno("truncating: " + path_, errno);
    }
    size_ = size;
    return {};
  }

  Status Sync() override {
    if (fdatasync(fd_) != 0) return FailErrno("syncing: " + path_, errno);
    return {};
  }

  [[nodiscard]] uint64_t size() const override { return size_; }

 private:
  std::string path_;
  int fd_;
  uint64_t size_;
};

class PosixReadFile final : public ReadFile {
 public:
  PosixReadFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  ~PosixReadFile() override { close(fd_); }
  PosixReadFile(const PosixReadFile&) = delete;
  PosixReadFile& operator=(const PosixReadFile&) = delete;

  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got =
          pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (got < 0) {
        if (errno == EINTR) continue;
        return FailErrno("reading: " + path_, errno);
      }
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  [[nodiscard]] uint64_t size() const override { return size_; }
  [[nodiscard]] const std::string& name() const override { return path_; }

  [[nodiscard]] uint64_t NextData(uint64_t from) const override {
    const off_t data = lseek(fd_, static_cast<off_t>(from), SEEK_DATA);
    if (data >= 0) return static_cast<uint64_t>(data);
    return errno == ENXIO ? std::max(from, size_) : from;
  }

  // A file system may pack what it stores, and add to it.
  [[nodiscard]] uint64_t stored_bytes() const override {
    constexpr uint64_t kBlock = 512;
    constexpr uint64_t kPacked = 8;
    struct stat info {};
    if (fstat(fd_, &info) != 0) return size_;
    return std::min(size_, (static_cast<uint64_t>(info.st_blocks) + 1) * kBlock * kPacked);
  }

 private:
  std::string path_;
  int fd_;
  uint64_t size_;
};

class MemoryFile final : public ReadFile {
 public:
  MemoryFile(std::string name, std::vector<std::byte> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= bytes_.size()) return size_t{0};
    const size_t size = std::min(out.size(), bytes_.size() - static_cast<size_t>(offset));
    if (size != 0) std::memcpy(out.data(), bytes_.data() + offset, size);
    return size;
  }

  [[nodiscard]] uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  std::string name_;
  std::vector<std::byte> bytes_;
};

Result<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return FailErrno("opening for writing: " + path, errno);
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return FailErrno("looking at " + path, error);
  }
  return std::make_unique<PosixAppendFile>(path, fd, static_cast<uint64_t>(info.st_size));
}

}  // namespace

Status WriteBoth(int fd, const std::string& path, uint64_t& size, std::span<const std::byte> first,
                 std::span<const std::byte> second) {
  while (!first.empty() || !second.empty()) {
    iovec parts[2] = {{const_cast<std::byte*>(first.data()), first.size()},
                      {const_cast<std::byte*>(second.data()), second.size()}};
    const ssize_t written = pwritev(fd, parts, 2, static_cast<off_t>(size));
    if (written < 0) {
      if (errno == EINTR) continue;
      return FailErrno("writing: " + path, errno);
    }
    if (written == 0) return FailErrno("writing: " + path, ENOSPC);
    size += static_cast<uint64_t>(written);
    const size_t of_first = std::min(static_cast<size_t>(written), first.size());
    first = first.subspan(of_first);
    second = second.subspan(static_cast<size_t>(written) - of_first);
  }
  return {};
}

Result<std::unique_ptr<AppendFile>> CreateAppendFile(const std::string& path) {
  return OpenForAppend(path, O_CREAT | O_EXCL);
}

Result<std::unique_ptr<AppendFile>> OpenAppendFile(const std::string& path) {
  return OpenForAppend(path, 0);
}

Result<std::unique_ptr<ReadFile>> OpenReadFile(const std::string& path) {
  // O_NONBLOCK: a FIFO in a hostile trace must not make the reader wait for a writer.
  const int fd = MoveUp(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd < 0) {
    const int error = errno;
    auto failure = FailErrno("opening: " + NameInMessages(path), error);
    if (failure.value().sys_errno == ENOENT) failure.value().code = ErrorCode::kNotFound;
    return failure;
  }
  struct stat info {};
  const bool known = fstat(fd, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    close(fd);
    return Fail(ErrorCode::kForeign, "opening: " + NameInMessages(path) + ": not a regular file");
  }
  return std::make_unique<PosixReadFile>(NameInMessages(path), fd,
                                         static_cast<uint64_t>(info.st_size));
}

std::unique_ptr<ReadFile> MakeMemoryFile(std::string name, std::vector<std::byte> bytes) {
  return std::make_unique<MemoryFile>(std::move(name), std::move(bytes));
}

}  // namespace deja
