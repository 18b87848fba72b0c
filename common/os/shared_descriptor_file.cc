#include "common/os/shared_descriptor_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "common/runtime/futex.h"

namespace deja {
namespace {

constexpr size_t kLeastOpen = 8;
constexpr size_t kMostOpen = 4096;

size_t HalfOfDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeastOpen;
  return static_cast<size_t>(std::clamp<rlim_t>(limit.rlim_cur / 2, kLeastOpen, kMostOpen));
}

// Zeros if it is not there.
std::pair<dev_t, ino_t> IdentityOf(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

class SharedFile;

// Those that are open, the one that was read last in front.
struct OpenFiles {
  FutexMutex mutex;
  std::list<const SharedFile*> files;
  const size_t most = HalfOfDescriptors();
};

OpenFiles& Open() {
  static OpenFiles* const open = new OpenFiles;  // outlives every file
  return *open;
}

class SharedFile final : public ReadFile {
 public:
  SharedFile(std::unique_ptr<ReadFile> file, std::string path)
      : path_(std::move(path)),
        name_(file->name()),
        size_(file->size()),
        identity_(IdentityOf(path_)) {
    const std::lock_guard<FutexMutex> lock(Open().mutex);
    Enter(std::move(file));
  }
  ~SharedFile() override {
    const std::lock_guard<FutexMutex> lock(Open().mutex);
    if (file_ != nullptr) Open().files.erase(place_);
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    DEJA_ASSIGN_OR_RETURN(const std::shared_ptr<const ReadFile> file, File());
    return file->ReadAt(offset, out);
  }
  [[nodiscard]] uint64_t size() const override { return size_; }
  [[nodiscard]] uint64_t NextData(uint64_t from) const override {
    const auto file = File();
    return file ? (*file)->NextData(from) : from;
  }
  [[nodiscard]] uint64_t stored_bytes() const override {
    const auto file = File();
    return file ? (*file)->stored_bytes() : 0;
  }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  // The open file, which stays open while the caller has it.
  Result<std::shared_ptr<const ReadFile>> File() const {
    OpenFiles& open = Open();
    const std::lock_guard<FutexMutex> lock(open.mutex);
    if (file_ != nullptr) {
      open.files.splice(open.files.begin(), open.files, place_);
      return file_;
    }
    DEJA_ASSIGN_OR_RETURN(std::unique_ptr<ReadFile> file, OpenReadFile(path_));
    if (IdentityOf(path_) != identity_)
      return Fail(ErrorCode::kIo, "reading: " + name_ + ": another file has replaced it");
    Enter(std::move(file));
    return file_;
  }

  void Enter(std::unique_ptr<ReadFile> file) const {
    OpenFiles& open = Open();
    file_ = std::move(file);
    open.files.push_front(this);
    place_ = open.files.begin();
    if (open.files.size() <= open.most) return;
    open.files.back()->file_ = nullptr;
    open.files.pop_back();
  }

  const std::string path_;
  const std::string name_;  // in messages
  const uint64_t size_;
  const std::pair<dev_t, ino_t> identity_;
  mutable std::shared_ptr<const ReadFile> file_;  // null: not open
  mutable std::list<const SharedFile*>::iterator place_;
};

}  // namespace

Result<std::unique_ptr<ReadFile>> OpenSharedDescriptorFile(const std::string& path) {
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<ReadFile> file, OpenReadFile(path));
  return std::unique_ptr<ReadFile>(std::make_unique<SharedFile>(std::move(file), path));
}

}  // namespace deja
