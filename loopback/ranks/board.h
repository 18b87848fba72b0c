// A rank's view of one board of its communicator (shared_area.h) during one collective.
//
// Rounds are numbered from the communicator's first on; a collective uses a known number of them,
// the same on all ranks. A rank that publishes, or consumes, nothing in a collective says so at the
// beginning (Skip…). Belongs to the thread that runs the collective.
#ifndef DEJA_LOOPBACK_RANKS_BOARD_H_
#define DEJA_LOOPBACK_RANKS_BOARD_H_

#include <cstdint>

#include "loopback/ranks/comm.h"

namespace deja::loopback {

class Board {
 public:
  Board(ncclComm* comm, int board) : comm_(*comm), board_(board) {}

  // The collective takes `rounds` rounds from here on.
  void Open(uint64_t rounds) {
    base_ = comm_.rounds[board_];
    rounds_ = rounds;
    comm_.rounds[board_] += rounds;
  }
  [[nodiscard]] uint64_t rounds() const { return rounds_; }

  // Rounds count from 0 within the collective.
  [[nodiscard]] char* Slot(int rank, uint64_t round) const {
    return comm_.area.Slot(board_, rank, base_ + round);
  }
  [[nodiscard]] bool HasPublished(int rank, uint64_t round) const {
    return Progress(rank).published.load(std::memory_order_acquire) > base_ + round;
  }
  [[nodiscard]] bool AllHavePublished(uint64_t round) const {
    for (int rank = 0; rank < comm_.nranks; ++rank)
      if (!HasPublished(rank, round)) return false;
    return true;
  }
  // Whether `rank` is done with what our slot for `round` held before.
  [[nodiscard]] bool HasFreed(int rank, uint64_t round) const {
    uint64_t number = base_ + round;
    return number < kSlots ||
           Progress(rank).consumed.load(std::memory_order_acquire) > number - kSlots;
  }
  [[nodiscard]] bool MayPublish(uint64_t round) const {
    for (int rank = 0; rank < comm_.nranks; ++rank)
      if (rank != comm_.rank && !HasFreed(rank, round)) return false;
    return true;
  }

  // Ranks that may wait for what we do. They need all ranks to have done it, or us alone, or they
  // are one rank (from 0 on).
  static constexpr int kForAll = -1;
  static constexpr int kForUs = -2;
  void Publish(uint64_t round, int waiting) {
    Advance(&BoardProgress::published, base_ + round + 1, waiting);
  }
  void Consume(uint64_t round, int waiting) {
    Advance(&BoardProgress::consumed, base_ + round + 1, waiting);
  }
  void SkipPublishing() { Advance(&BoardProgress::published, base_ + rounds_, kForAll); }
  void SkipConsuming() { Advance(&BoardProgress::consumed, base_ + rounds_, kForAll); }

 private:
  [[nodiscard]] BoardProgress& Progress(int rank) const {
    return comm_.area.cell(rank).boards[board_];
  }

  void Advance(std::atomic<uint64_t> BoardProgress::*what, uint64_t to, int waiting) {
    std::atomic<uint64_t>& own = Progress(comm_.rank).*what;
    uint64_t before = own.load(std::memory_order_relaxed);
    own.store(to, std::memory_order_seq_cst);
    if (waiting >= 0) {
      comm_.area.Ring(waiting);
      return;
    }
    // Only the last of all ranks need ring.
    for (int rank = 0; waiting == kForAll && rank < comm_.nranks; ++rank)
      if (rank != comm_.rank && (Progress(rank).*what).load(std::memory_order_seq_cst) < before)
        return;
    for (int rank = 0; rank < comm_.nranks; ++rank)
      if (rank != comm_.rank) comm_.area.Ring(rank);
  }

  ncclComm& comm_;
  int board_;
  uint64_t base_ = 0;
  uint64_t rounds_ = 0;
};

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_BOARD_H_
