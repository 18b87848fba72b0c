#include "format/log/process_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/os/own_descriptor.h"
#include "common/os/own_stat.h"

namespace deja::format {
namespace {

constexpr uint64_t kReserveStep = 256 << 10;
constexpr uint64_t kLastReserve = 1024;

class ProcessFileImpl final : public ProcessFile {
 public:
  ProcessFileImpl(std::string path, int fd, const struct stat& info)
      : path_(std::move(path)),
        fd_(fd),
        device_(info.st_dev),
        inode_(info.st_ino),
        size_(static_cast<uint64_t>(info.st_size)) {}
  ~ProcessFileImpl() override {
    if (IsOurs(fd_)) close(fd_);
  }
  ProcessFileImpl(const ProcessFileImpl&) = delete;
  ProcessFileImpl& operator=(const ProcessFileImpl&) = delete;

  Status Append(std::span<const std::byte> first, std::span<const std::byte> second) override {
    DEJA_RETURN_IF_ERROR(MakeSure());
    return WriteBoth(fd_, path_, size_, first, second);
  }

  Status Truncate(uint64_t size) override {
    DEJA_RETURN_IF_ERROR(MakeSure());
    // What is appended next overwrites what could not be cut off.
    size_ = size;
    if (ftruncate(fd_, static_cast<off_t>(size)) != 0) {
      return FailErrno("cutting: " + path_, errno);
    }
    return {};
  }

  Status Sync() override {
    DEJA_RETURN_IF_ERROR(MakeSure());
    if (fdatasync(fd_) != 0) return FailErrno("syncing: " + path_, errno);
    return {};
  }

  bool Reserve(uint64_t bytes) override {
    if (size_ + bytes <= reserved_end_ || !can_reserve_) return true;
    if (!MakeSure()) return false;
    // More than is asked for, where there is plenty: it is cheaper than little by little.
    if (Allocate(bytes + kReserveStep) || Allocate(bytes)) return true;
    can_reserve_ = errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL;
    return !can_reserve_;
  }
  void ReleaseReserve() override {
    if (reserved_end_ <= size_ || !MakeSure()) return;
    (void)!ftruncate(fd_, static_cast<off_t>(size_));
    Allocate(kLastReserve);
  }

  [[nodiscard]] uint64_t size() const override { return size_; }
  void Renamed(const std::string& path) override { path_ = path; }
  void CloseInChild() override {
    if (IsOurs(fd_)) close(fd_);
    fd_ = -1;
  }

 private:
  [[nodiscard]] bool IsOurs(int fd) const {
    struct stat info {};
    return fd >= 0 && OwnStat(fd, &info) && info.st_dev == device_ && info.st_ino == inode_;
  }

  bool Allocate(uint64_t bytes) {
    int result;
    do {
      result =
          fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    if (result == 0) reserved_end_ = size_ + bytes;
    return result == 0;
  }

  Status MakeSure() {
    if (IsOurs(fd_)) return {};
    const int fd = open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return FailErrno("reopening: " + path_, errno);
    fd_ = MoveUp(fd);
    if (IsOurs(fd_)) return {};
    close(fd_);
    fd_ = -1;
    return Fail(ErrorCode::kIo, "reopening: " + path_ + ": another file has replaced it", ESTALE);
  }

  std::string path_;
  int fd_;
  dev_t device_;
  ino_t inode_;
  uint64_t size_;
  uint64_t reserved_end_ = 0;
  bool can_reserve_ = true;
};

}  // namespace

void SpareFds::Reserve() {
  for (int& fd : fds_) {
    if (fd >= 0) continue;
    const int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (low >= 0) fd = MoveUp(low);
  }
}

bool SpareFds::Release() {
  for (int& fd : fds_) {
    if (fd < 0) continue;
    struct stat info {};
    const int spare = std::exchange(fd, -1);
    // Only if it is still the null device: the program may have closed it and reused the number.
    if (!OwnStat(spare, &info) || !S_ISCHR(info.st_mode)) continue;
    close(spare);
    return true;
  }
  return false;
}

void SpareFds::CloseAll() {
  while (Release()) {
  }
}

Result<std::unique_ptr<ProcessFile>> OpenProcessFile(const std::string& path, FileStart start,
                                                     SpareFds* spare) {
  const int flags =
      O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (start == FileStart::kCreate ? O_CREAT | O_EXCL : 0);
  int fd = open(path.c_str(), flags, 0600);
  while (fd < 0 && (errno == EMFILE || errno == ENFILE) && spare != nullptr && spare->Release()) {
    fd = open(path.c_str(), flags, 0600);
  }
  if (fd < 0) return FailErrno("opening: " + path, errno);
  fd = MoveUp(fd);
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return FailErrno("looking at " + path, error);
  }
  return std::make_unique<ProcessFileImpl>(path, fd, info);
}

}  // namespace deja::format
