// TurnArea: what `deja replay` and the ranks that it replays together tell each other: who waits,
// and, where they share devices, whose memory is on these.
//
// A file of one page a rank, mapped by all of them. `deja replay` makes it and decides; a rank (its
// process) has one cell, says in it what it does, and rings. A rank that has to wait sleeps on its
// own cell's bell, which `deja replay` rings. All members that change while ranks run are atomics;
// any thread. Each process that opens it owns its mapping until it ends.
#ifndef DEJA_COMMON_OS_TURN_AREA_H_
#define DEJA_COMMON_OS_TURN_AREA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/result.h"

namespace deja {

// Where the device memory of a rank is. `deja replay` alone changes it.
enum class Place : uint32_t {
  kIn = 0,   // on the device, or it has none yet
  kLeaving,  // about to be swapped out, if the rank still waits
  kOut,      // in the driver's host memory: every call of CUDA waits
};

// What became of an allocation that had failed.
enum class MemoryAnswer : uint32_t { kNone = 0, kTryAgain, kNo };

struct alignas(4096) TurnCell {
  // ---- the rank's
  std::atomic<uint32_t> pid;       // 0: no process of the rank has opened it
  std::atomic<uint32_t> resting;   // threads that wait for other ranks, and use no device meanwhile
  std::atomic<uint32_t> wants_in;  // threads that have waited long enough, and need their device
  std::atomic<uint64_t> rests;     // how often a thread has begun or ended to rest
  std::atomic<uint64_t> devices;   // a bit for each that it uses
  std::atomic<uint64_t> held;      // bytes that the program has allocated; 0 once it has ended
  // An allocation that has failed: `asks` is odd while it waits for an answer.
  std::atomic<uint32_t> asks;
  std::atomic<uint64_t> asked_bytes;
  std::atomic<uint64_t> asked_device;  // number
  std::atomic<uint64_t> free_bytes;    // of that device, and its size; 0: not known
  std::atomic<uint64_t> total_bytes;

  // ---- of `deja replay`
  alignas(64) std::atomic<uint32_t> bell;  // counts; a futex
  std::atomic<Place> place;
  std::atomic<MemoryAnswer> answer;
  std::atomic<uint32_t> ended;  // its process is gone

  // ---- of the area, in the first cell
  // `deja replay` brings ranks in and out. Otherwise it does not answer.
  std::atomic<uint32_t> schedules;
  // All wait, and each of those that were out has had a turn, of which nothing has come.
  std::atomic<uint32_t> all_still;
};

class TurnArea {
 public:
  // Makes the file, for `ranks` ranks.
  static Result<TurnArea> Create(const std::string& path, uint32_t ranks);
  static Result<TurnArea> Open(const std::string& path);

  [[nodiscard]] uint32_t ranks() const { return ranks_; }
  [[nodiscard]] TurnCell& cell(uint32_t rank) const { return cells_[rank + 1]; }
  // On which `deja replay` sleeps.
  [[nodiscard]] std::atomic<uint32_t>& bell() const { return cells_[0].bell; }
  [[nodiscard]] std::atomic<uint32_t>& schedules() const { return cells_[0].schedules; }
  [[nodiscard]] std::atomic<uint32_t>& all_still() const { return cells_[0].all_still; }

  // Wakes all that sleep on `bell`. Any process.
  static void Ring(std::atomic<uint32_t>& bell);
  // Sleeps until it has rung since it was `seen`, at most for `limit_ms`. May return early.
  static void WaitFor(std::atomic<uint32_t>& bell, uint32_t seen, uint32_t limit_ms);

 private:
  static Result<TurnArea> Map(int fd, const std::string& path);

  TurnCell* cells_ = nullptr;  // the first one is no rank's
  uint32_t ranks_ = 0;
};

}  // namespace deja

#endif  // DEJA_COMMON_OS_TURN_AREA_H_
