#include "format/tail/tail.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/os/own_descriptor.h"
#include "common/os/own_stat.h"
#include "common/process/process_identity.h"
#include "common/runtime/errno_keeper.h"
#include "common/runtime/futex.h"
#include "common/runtime/own_mapping.h"
#include "format/tail/ring_producer.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace deja::format {
namespace {

constexpr uint64_t kMinArenaBytes = 64 << 10;

uint64_t RoundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// Where the parts are, and how long the file is. Sets the offsets of `header`.
uint64_t LayOut(const TailOptions& options, TailHeader& header) {
  header.ring_count = kTailRings;
  header.emergency_count = kTailEmergencySlots;
  header.ring_bytes =
      std::bit_ceil(std::clamp<uint64_t>(options.ring_bytes, kTailMinRingBytes, kTailMaxRingBytes));
  header.arena_bytes = RoundUp(
      std::clamp<uint64_t>(options.arena_bytes, kMinArenaBytes, kTailMaxArenaBytes), kTailPage);
  header.directory_offset = kTailPage;
  header.emergency_offset =
      RoundUp(header.directory_offset + kTailRings * sizeof(RingInfo), kTailPage);
  header.rings_offset =
      RoundUp(header.emergency_offset + kTailEmergencySlots * sizeof(EmergencySlot), kTailPage);
  header.arena_offset = header.rings_offset + kTailRings * RingStride(header.ring_bytes);
  header.file_bytes = header.arena_offset + header.arena_bytes;
  return header.file_bytes;
}

}  // namespace

Pressure Tail::pressure() {
  const TailHeader& header = this->header();
  Pressure pressure;
  pressure.buffer_bytes = header.arena_bytes;
  pressure.peak_bytes = header.peak_bytes.load(std::memory_order_relaxed);
  pressure.waits = header.waits.load(std::memory_order_relaxed);
  pressure.waited_ns = header.waited_ns.load(std::memory_order_relaxed);
  pressure.payloads = header.dropped_payloads.load(std::memory_order_relaxed);
  pressure.payload_bytes = header.dropped_payload_bytes.load(std::memory_order_relaxed);
  return pressure;
}

std::string TailNamePrefix(const std::string& job_id) {
  std::string name;
  for (const char c : job_id) {
    const bool good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (good && name.size() < 64) name += c;
  }
  return "deja-" + (name.empty() ? "0" : name) + "-";
}

Result<std::unique_ptr<Tail>> Tail::Create(const TailOptions& options) {
  const ScopedSignalBlock no_signals;
  std::unique_ptr<Tail> tail(new Tail);
  const ProcessIdentity self = ThisProcess();
  uint8_t nonce[4];
  RandomBytes(nonce, sizeof nonce);
  char name[48];
  snprintf(name, sizeof name, "%u-%02x%02x%02x%02x", self.pid, nonce[0], nonce[1], nonce[2],
           nonce[3]);
  tail->process_name_ = name;
  for (const std::string& directory : options.directories) {
    if (!directory.empty() && tail->CreateIn(directory, options)) return tail;
  }
  TailHeader layout{};
  tail->path_.clear();
  tail->file_bytes_ = LayOut(options, layout);
  void* base = MapOwn(tail->file_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (base == MAP_FAILED) return FailErrno("reserving memory for the events", errno);
  tail->base_ = static_cast<std::byte*>(base);
  tail->FillHeader(options);
  return tail;
}

Status Tail::CreateIn(const std::string& directory, const TailOptions& options) {
  TailHeader layout{};
  TailOptions fitting = options;
  file_bytes_ = LayOut(fitting, layout);
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < file_bytes_) {
    if (limit.rlim_cur < layout.arena_offset + options.first_arena_bytes) {
      return Fail(ErrorCode::kLimit, "the limit on file sizes is too low");
    }
    fitting.arena_bytes = (limit.rlim_cur - layout.arena_offset) / kTailPage * kTailPage;
    file_bytes_ = LayOut(fitting, layout);
  }
  path_ = directory + "/" + TailNamePrefix(options.job_id) + process_name_ + kTailNameSuffix;
  const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return FailErrno("creating: " + path_, errno);
  fd_ = MoveUp(fd);
  struct stat info {};
  int error = 0;
  void* base = MAP_FAILED;
  if (fstat(fd_, &info) != 0 || ftruncate(fd_, static_cast<off_t>(file_bytes_)) != 0) {
    error = errno;
  } else {
    device_ = info.st_dev;
    inode_ = info.st_ino;
    base = MapOwn(file_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (base == MAP_FAILED) error = errno;
  }
  if (base != MAP_FAILED) {
    base_ = static_cast<std::byte*>(base);
    madvise(base_, file_bytes_, MADV_DONTFORK);
    madvise(base_, file_bytes_, MADV_DONTDUMP);  // a core file has no use for it
    // The fixed parts, and proof that there is room for a ring and a little of the arena.
    if (Prepare(0, layout.rings_offset + RingStride(layout.ring_bytes)) &&
        Prepare(layout.arena_offset, std::min(layout.arena_bytes, options.first_arena_bytes))) {
      FillHeader(fitting);
      return {};
    }
    error = ENOSPC;
    munmap(base_, file_bytes_);
    base_ = nullptr;
  }
  unlink(path_.c_str());
  close(fd_);
  fd_ = -1;
  return FailErrno("creating: " + path_, error);
}

void Tail::FillHeader(const TailOptions& options) {
  const ProcessIdentity self = ThisProcess();
  TailHeader& header = *new (base_) TailHeader{};
  LayOut(options, header);
  first_arena_bytes_ = std::min(header.arena_bytes, options.first_arena_bytes);
  header.version = kTailVersion;
  header.pid = self.pid;
  header.start_ticks = self.start_ticks;
  header.pid_namespace = self.pid_namespace;
  std::memcpy(header.boot_id, self.boot_id.data(), sizeof header.boot_id);
  RandomBytes(header.id, sizeof header.id);
  // Last, and after everything else: without it the file is no tail.
  uint64_t magic;
  std::memcpy(&magic, kTailMagic, sizeof magic);
  std::atomic_ref(*reinterpret_cast<uint64_t*>(header.magic))
      .store(magic, std::memory_order_release);
}

std::string Tail::id() const {
  return {reinterpret_cast<const char*>(reinterpret_cast<const TailHeader*>(base_)->id), 16};
}

bool Tail::PutEmergency(std::span<const std::byte> encoded_event) {
  if (encoded_event.empty() || encoded_event.size() > kMaxEmergencyBytes) return false;
  for (uint32_t i = 0; i < kTailEmergencySlots; ++i) {
    EmergencySlot& free_slot = slot(i);
    auto expected = static_cast<uint32_t>(SlotState::kFree);
    if (!free_slot.state.compare_exchange_strong(
            expected, static_cast<uint32_t>(SlotState::kWriting), std::memory_order_acquire)) {
      continue;
    }
    free_slot.length = static_cast<uint32_t>(encoded_event.size());
    free_slot.check = RecordCheck(encoded_event.data(), encoded_event.size());
    std::memcpy(free_slot.bytes, encoded_event.data(), encoded_event.size());
    free_slot.state.store(static_cast<uint32_t>(SlotState::kComplete), std::memory_order_release);
    return true;
  }
  return false;
}

bool Tail::FdIsOurs() const {
  struct stat info {};
  return fd_ >= 0 && OwnStat(fd_, &info) && info.st_dev == device_ && info.st_ino == inode_;
}

bool Tail::Prepare(uint64_t offset, uint64_t bytes) {
  const ErrnoKeeper keep;
  bool allocated = path_.empty();  // memory without a file cannot raise SIGBUS
  if (!allocated && FdIsOurs()) {
    int result;
    do {
      result = fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    allocated = result == 0;
    if (!allocated && errno != EOPNOTSUPP && errno != ENOSYS) return false;
    if (!allocated) {
      // File systems without fallocate: what has been written once is there. The program may have
      // set a limit on file sizes meanwhile.
      const ScopedSignalBlock no_signals;
      static constexpr char kZeros[4096] = {};
      allocated = true;
      for (uint64_t at = offset; at < offset + bytes && allocated; at += sizeof kZeros) {
        const size_t size = std::min<uint64_t>(sizeof kZeros, offset + bytes - at);
        allocated = pwrite(fd_, kZeros, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
      }
    }
  }
  // Maps the pages at once, which is cheaper than faults one by one; and where the descriptor is
  // lost this is what finds out whether there is room.
  const bool populated = madvise(base_ + offset, bytes, MADV_POPULATE_WRITE) == 0;
  return allocated || populated;
}

bool Tail::PrepareRing(uint32_t i) {
  const uint64_t stride = RingStride(header().ring_bytes);
  return Prepare(header().rings_offset + uint64_t{i} * stride, stride);
}

bool Tail::PrepareArena(uint64_t offset, uint64_t bytes) {
  return Prepare(header().arena_offset + offset, bytes);
}

void Tail::Remove() {
  if (path_.empty()) return;
  struct stat info {};
  // Only the file that this object made: it may have been replaced.
  if (OwnStat(path_.c_str(), &info) && info.st_dev == device_ && info.st_ino == inode_) {
    unlink(path_.c_str());
  }
  if (FdIsOurs()) close(fd_);
  fd_ = -1;
}

void Tail::CloseInChild() {
  if (FdIsOurs()) close(fd_);
  fd_ = -1;
}

}  // namespace deja::format
