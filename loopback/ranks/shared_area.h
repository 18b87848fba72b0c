// The memory that the ranks of one communicator share.
//
// An anonymous file (memfd; where that is refused, an unnamed file in /dev/shm or /tmp), so that it
// has no name and is gone with the last rank however that ends. Rank 0 makes it; the others are
// handed its descriptor (rendezvous.h). Pages are only taken when they are touched: most of a large
// communicator's area never is.
//
// What is in it:
// - for each rank a cell: who it is, a doorbell it sleeps on, and how far it has come on the
// boards;
// - boards, on which a rank publishes data for all others: a few slots a rank, used round by
//   round. A slot may be overwritten when every rank has consumed the round that it held.
// - for each ordered pair of ranks a channel: a ring of bytes from one sender to one receiver.
//
// SharedArea owns its mapping. All members of the cells are atomics and used by any thread.
#ifndef DEJA_LOOPBACK_RANKS_SHARED_AREA_H_
#define DEJA_LOOPBACK_RANKS_SHARED_AREA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/result.h"

namespace deja::loopback {

// Inputs of collectives, their results, and what is agreed on when communicators are made from one
// (which must work when the other two have been left in the middle of something).
inline constexpr int kInputBoard = 0;
inline constexpr int kResultBoard = 1;
inline constexpr int kControlBoard = 2;
inline constexpr int kBoards = 3;
inline constexpr uint64_t kSlots = 4;
inline constexpr size_t kSlotBytes = size_t{256} << 10;
inline constexpr int kMaxRanks = 1024;
inline constexpr uint64_t kCalls = 4;

struct AreaHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t nranks;
  uint8_t nonce[16];  // names the communicator; those made from it derive their keys from it
  std::atomic<uint32_t> joined;
  // 1 + the rank whose end broke the communicator; 0 while it is whole.
  std::atomic<uint32_t> broken_by;
};

enum class RankState : uint32_t { kAbsent = 0, kJoined = 1, kAborted = 2, kLeft = 3 };

struct BoardProgress {
  std::atomic<uint64_t> published;  // rounds that this rank has published
  std::atomic<uint64_t> consumed;   // rounds of all others that this rank has finished reading
};

struct alignas(64) RankCell {
  std::atomic<uint32_t> doorbell;  // counts; a futex
  std::atomic<uint32_t> sleepers;  // threads of this rank that wait on the doorbell
  std::atomic<uint32_t> state;     // RankState
  int32_t pid;                     // written before `state`
  uint64_t start_time;             // of that process, in the kernel's ticks
  uint64_t pid_namespace;
  std::atomic<uint64_t> protocol;       // what NCCL_PROTO and NCCL_ALGO say; a hash
  std::atomic<uint64_t> calls[kCalls];  // its last collectives, where they are compared
  alignas(64) BoardProgress boards[kBoards];
};

// From one rank to another. Positions count bytes since the beginning.
struct alignas(64) Channel {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

class SharedArea {
 public:
  // A new area; the descriptor is for handing out.
  static Result<SharedArea> Create(int nranks);
  // Maps the area of `fd`, which is closed. `nranks` must be what it was made for.
  static Result<SharedArea> Map(int fd, int nranks);

  SharedArea() = default;
  SharedArea(SharedArea&& other) noexcept;
  SharedArea& operator=(SharedArea&& other) noexcept;
  ~SharedArea();

  [[nodiscard]] bool valid() const { return base_ != nullptr; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] int nranks() const { return nranks_; }
  [[nodiscard]] size_t size() const { return size_; }
  void CloseFd();

  [[nodiscard]] AreaHeader& header() const { return *reinterpret_cast<AreaHeader*>(base_); }
  [[nodiscard]] RankCell& cell(int rank) const;
  [[nodiscard]] Channel& channel(int from, int to) const;
  [[nodiscard]] char* ChannelBytes(int from, int to) const;
  [[nodiscard]] size_t channel_bytes() const { return channel_bytes_; }  // a power of two
  // Wakes what waits on the doorbell of `rank`, or of all ranks.
  void Ring(int rank) const;
  void RingAll() const;
  // The slot of `rank` that holds `round`.
  [[nodiscard]] char* Slot(int board, int rank, uint64_t round) const;

 private:
  void Lay(int nranks);
  Status MapFd(int fd);

  char* base_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;
  int nranks_ = 0;
  size_t channel_bytes_ = 0;
  size_t cells_at_ = 0;
  size_t channels_at_ = 0;
  size_t boards_at_ = 0;
  size_t rings_at_ = 0;
};

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_SHARED_AREA_H_
