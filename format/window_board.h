// WindowBoard: what the ranks of a machine that keep payloads together must agree on, so that the
// window of payloads moves for all of them at once.
//
// Payloads go into numbered segments, one file each; an old segment is dropped as a whole. A rank
// may rely on bytes that another rank keeps, and ranks are not at the same step. So the number of
// the segment that is being filled is one for all of them, each says which segments its own window
// reaches back to, and none drops what another one still wants.
//
// Plain layout of lock-free words, all zero at first: in memory that ranks share (SharedPieces), or
// in a rank's own. Owner: whoever has the memory. Any thread, any process.
#ifndef DEJA_FORMAT_WINDOW_BOARD_H_
#define DEJA_FORMAT_WINDOW_BOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace deja::format {

class WindowBoard {
 public:
  static constexpr uint32_t kMembers = 256;

  // Takes a place. -1: there is none left.
  int Join();
  // The member's window ends here and is wanted for good: its process ends.
  void Close(int member);

  // The segment that is being filled.
  [[nodiscard]] uint32_t segment() const { return segment_.load(std::memory_order_acquire); }
  // Begins the next one, unless somebody has done that since `seen` was the segment.
  void Advance(uint32_t seen);
  // The same for the first member that comes to the `part`-th part (from 1) of its run, if the
  // segment has `least_bytes`: parts with little in them share one. The first part shares none with
  // what came before it.
  void AdvanceForPart(uint64_t part, uint64_t least_bytes);
  // So much more goes into the segment.
  void AddBytes(uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  // The member's window begins with this segment.
  void SetFirst(int member, uint32_t first);
  // True if a segment that is complete is in some member's window. Members whose process is gone
  // keep the window that they had.
  bool Wanted(uint32_t segment);

  // The `number`-th mark (from 1): what is kept at this moment stays. Who comes later with the same
  // number changes nothing.
  void Mark(uint64_t number);
  // Some member was in a collective just now; when that was last (0: never).
  void Progress(uint64_t now_ns) { progress_ns_.store(now_ns, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t progress_ns() const {
    return progress_ns_.load(std::memory_order_relaxed);
  }
  // True for the first who says that there was none since.
  bool TakeHang(uint64_t progress_ns);

  // Marks keep the segments before this one.
  [[nodiscard]] uint32_t marked_end() const { return marked_end_.load(std::memory_order_acquire); }

 private:
  struct Member {
    std::atomic<uint32_t> pid;    // 0: nobody
    std::atomic<uint32_t> first;  // its window
    std::atomic<uint32_t> end;    // behind the last segment of it; 0: it goes on
  };

  std::atomic<uint32_t> segment_;
  std::atomic<uint32_t> marked_end_;
  std::atomic<uint64_t> marks_;
  std::atomic<uint64_t> parts_;
  std::atomic<uint64_t> progress_ns_;
  std::atomic<uint64_t> hang_ns_;
  std::atomic<uint64_t> bytes_;  // in the segment so far
  Member members_[kMembers];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(WindowBoard) <= 4096);

}  // namespace deja::format

#endif  // DEJA_FORMAT_WINDOW_BOARD_H_
