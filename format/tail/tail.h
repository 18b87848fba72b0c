// Tail: the writing side of the shared mapping (tail_format.h).
//
// Makes the file, hands out addresses in it, and makes sure that every page is there before it is
// written to. The file is sparse, and touching a page that a full file system cannot provide would
// kill the process by SIGBUS. Prepare*() fail instead.
//
// Owner: RankLog; never unmapped, because threads may still be writing when the process ends. The
// mapping is not inherited by children. Threads: as the RankLog serializes them.
#ifndef DEJA_FORMAT_TAIL_TAIL_H_
#define DEJA_FORMAT_TAIL_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/tail/tail_format.h"
#include "format/wire/messages.h"

namespace deja::format {

struct TailOptions {
  std::vector<std::string> directories;  // tried in this order
  std::string job_id;
  uint64_t ring_bytes = 0;
  uint64_t arena_bytes = 0;
  uint64_t first_arena_bytes = 256 << 10;  // so much of the arena has memory from the start
};

class Tail {
 public:
  // Memory of this process serves if no directory can have it. A recording that does not survive
  // SIGKILL is better than none. path() is empty then. Fails only without memory.
  static Result<std::unique_ptr<Tail>> Create(const TailOptions& options);

  [[nodiscard]] const std::string& path() const { return path_; }
  // "<pid>-<nonce>": what this process's files that have no other name are called by.
  [[nodiscard]] const std::string& process_name() const { return process_name_; }
  [[nodiscard]] std::string id() const;

  TailHeader& header() { return *reinterpret_cast<TailHeader*>(base_); }
  RingInfo& ring(uint32_t i) {
    return reinterpret_cast<RingInfo*>(base_ + header().directory_offset)[i];
  }
  std::byte* ring_bytes(uint32_t i) { return reinterpret_cast<std::byte*>(&clocks(i)) + kTailPage; }
  ClockArea& clocks(uint32_t i) {
    return *reinterpret_cast<ClockArea*>(base_ + header().rings_offset +
                                         uint64_t{i} * RingStride(header().ring_bytes));
  }
  EmergencySlot& slot(uint32_t i) {
    return reinterpret_cast<EmergencySlot*>(base_ + header().emergency_offset)[i];
  }
  // So much of the arena is there already.
  [[nodiscard]] uint64_t first_arena_bytes() const { return first_arena_bytes_; }
  std::byte* arena() { return base_ + header().arena_offset; }

  // Keeps an event beside the rings; RankLog::AppendEmergency.
  bool PutEmergency(std::span<const std::byte> encoded_event);

  // A thread of the program has waited for room; a payload was not kept for lack of it.
  void CountWait(uint64_t ns) {
    header().waits.fetch_add(1, std::memory_order_relaxed);
    header().waited_ns.fetch_add(ns, std::memory_order_relaxed);
  }
  void CountPressureDrop(uint64_t bytes) {
    header().dropped_payloads.fetch_add(1, std::memory_order_relaxed);
    header().dropped_payload_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] Pressure pressure();

  // False when there is no room for them.
  bool PrepareRing(uint32_t i);
  bool PrepareArena(uint64_t offset, uint64_t bytes);

  // Removes the file's name; the mapping stays.
  void Remove();
  // Closes the descriptor, in a child that inherited it. Touches no mapped memory.
  void CloseInChild();

 private:
  Tail() = default;
  Status CreateIn(const std::string& directory, const TailOptions& options);
  void FillHeader(const TailOptions& options);
  bool Prepare(uint64_t offset, uint64_t bytes);
  [[nodiscard]] bool FdIsOurs() const;

  std::string path_;
  std::string process_name_;
  std::byte* base_ = nullptr;
  uint64_t file_bytes_ = 0;
  uint64_t first_arena_bytes_ = 0;
  int fd_ = -1;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
};

// How the names of the tails of one job begin: "deja-<job id>-"; they end with ".tail", and
// Tail::process_name() is between the two. What could not be part of a file name is left out.
std::string TailNamePrefix(const std::string& job_id);
inline constexpr char kTailNameSuffix[] = ".tail";
// A folder of a process that is no rank (yet): this and Tail::process_name().
inline constexpr char kPendingPrefix[] = "pending-";

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_TAIL_H_
