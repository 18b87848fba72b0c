#include "loopback/ranks/shared_area.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <string>
#include <utility>

#include "loopback/ranks/process.h"

namespace deja::loopback {
namespace {

constexpr uint64_t kMagic = 0x6b6362706f6f6c64;  // "dloopbck"
constexpr uint32_t kVersion = 2;

size_t Align(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

int NamelessFile() {
  int fd = memfd_create("deja-loopback", MFD_CLOEXEC);
  if (fd >= 0) return fd;
  for (const char* directory : {"/dev/shm", "/tmp"}) {
    fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
  }
  return -1;
}

// Sets the file's size. Where `ulimit -f` forbids it, the kernel answers with a signal that ends
// the process as well as with an error: the error is enough. Returns an errno.
int Resize(int fd, size_t size) {
  sigset_t limit;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &limit, &before);
  int error = ftruncate(fd, static_cast<off_t>(size)) == 0 ? 0 : errno;
  if (error == EFBIG && sigismember(&pending, SIGXFSZ) == 0) {
    timespec at_once{};
    sigtimedwait(&limit, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace

void SharedArea::Lay(int nranks) {
  auto n = static_cast<size_t>(nranks);
  nranks_ = nranks;
  // Rings shrink as pairs multiply: 256 KiB up to 16 ranks, 4 KiB from 256.
  channel_bytes_ = size_t{256} << 10;
  while (channel_bytes_ > 4096 && n * n * channel_bytes_ > (size_t{64} << 20)) channel_bytes_ /= 2;
  cells_at_ = 4096;
  channels_at_ = Align(cells_at_ + n * sizeof(RankCell), 4096);
  boards_at_ = Align(channels_at_ + n * n * sizeof(Channel), 4096);
  rings_at_ = boards_at_ + n * kBoards * kSlots * kSlotBytes;
  size_ = rings_at_ + n * n * channel_bytes_;
}

Status SharedArea::MapFd(int fd) {
  void* base = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return FailErrno("mapping the communicator's shared memory", errno);
  base_ = static_cast<char*>(base);
  fd_ = fd;
  return {};
}

Result<SharedArea> SharedArea::Create(int nranks) {
  SharedArea area;
  area.Lay(nranks);
  int fd = NamelessFile();
  if (fd < 0) return FailErrno("making the communicator's shared memory", errno);
  if (int error = Resize(fd, area.size_); error != 0) {
    close(fd);
    return FailErrno("sizing the communicator's shared memory (" +
                         std::to_string(area.size_ >> 20) + " MiB; `ulimit -f` counts it)",
                     error);
  }
  if (Status mapped = area.MapFd(fd); !mapped) {
    close(fd);
    return tl::unexpected(std::move(mapped.error()));
  }
  AreaHeader& header = area.header();
  header.magic = kMagic;
  header.version = kVersion;
  header.nranks = static_cast<uint32_t>(nranks);
  RandomBytes(header.nonce, sizeof header.nonce);
  return area;
}

Result<SharedArea> SharedArea::Map(int fd, int nranks) {
  SharedArea area;
  area.Lay(nranks);
  struct stat info {};
  if (fstat(fd, &info) != 0 || static_cast<size_t>(info.st_size) != area.size_) {
    close(fd);
    return Fail(ErrorCode::kForeign, "rank 0 shared memory of another size");
  }
  if (Status mapped = area.MapFd(fd); !mapped) {
    close(fd);
    return tl::unexpected(std::move(mapped.error()));
  }
  const AreaHeader& header = area.header();
  if (header.magic != kMagic || header.version != kVersion ||
      header.nranks != static_cast<uint32_t>(nranks))
    return Fail(ErrorCode::kForeign, "rank 0 shared memory of another kind");
  area.CloseFd();
  return area;
}

SharedArea::SharedArea(SharedArea&& other) noexcept {
  *this = std::move(other);
}

SharedArea& SharedArea::operator=(SharedArea&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  std::swap(nranks_, other.nranks_);
  std::swap(channel_bytes_, other.channel_bytes_);
  std::swap(cells_at_, other.cells_at_);
  std::swap(channels_at_, other.channels_at_);
  std::swap(boards_at_, other.boards_at_);
  std::swap(rings_at_, other.rings_at_);
  return *this;
}

SharedArea::~SharedArea() {
  CloseFd();
  if (base_ != nullptr) munmap(base_, size_);
}

void SharedArea::CloseFd() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void SharedArea::Ring(int rank) const {
  RankCell& own = cell(rank);
  own.doorbell.fetch_add(1, std::memory_order_seq_cst);
  if (own.sleepers.load(std::memory_order_seq_cst) != 0) WakeDoorbell(own.doorbell);
}

void SharedArea::RingAll() const {
  for (int rank = 0; rank < nranks_; ++rank) Ring(rank);
}

RankCell& SharedArea::cell(int rank) const {
  return reinterpret_cast<RankCell*>(base_ + cells_at_)[rank];
}

Channel& SharedArea::channel(int from, int to) const {
  return reinterpret_cast<Channel*>(base_ + channels_at_)[from * nranks_ + to];
}

char* SharedArea::ChannelBytes(int from, int to) const {
  auto index = static_cast<size_t>(from) * static_cast<size_t>(nranks_) + static_cast<size_t>(to);
  return base_ + rings_at_ + index * channel_bytes_;
}

char* SharedArea::Slot(int board, int rank, uint64_t round) const {
  auto index = static_cast<size_t>(rank) * kBoards + static_cast<size_t>(board);
  return base_ + boards_at_ + (index * kSlots + round % kSlots) * kSlotBytes;
}

}  // namespace deja::loopback
