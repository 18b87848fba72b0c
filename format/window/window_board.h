// WindowBoard: the agreement of a machine's ranks that keep payloads together, so that their
// windows of payloads move at once.
//
// Payloads go into numbered segments, one file each; an old segment is dropped as a whole. A rank
// may rely on bytes that another rank keeps, and ranks are not at the same step. So all have one
// number for the segment that is being filled. Each says which segments its own window reaches back
// to, and none drops what another one still wants.
//
// Child processes of a rank follow the board without a place on it. Their payloads go into segments
// with the same numbers, and go when no rank of the machine wants those any more.
//
// Plain layout of lock-free words, all zero at first: in memory that the processes of a job share
// (OfJob), or in a rank's own. Owner: whoever has the memory. Any thread, any process.
#ifndef DEJA_FORMAT_WINDOW_WINDOW_BOARD_H_
#define DEJA_FORMAT_WINDOW_WINDOW_BOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace deja::format {

class WindowBoard {
 public:
  static constexpr uint32_t kMembers = 256;

  // The one of the job's processes on this machine, in `directory`; made by who comes first if
  // `create`. Null if there is none. Never unmapped.
  static WindowBoard* OfJob(const std::string& directory, const std::string& job_id,
                            bool create = true);

  // Takes a place. -1: there is none left. A member of a later attempt, when all before it are
  // gone, counts parts and steps from the beginning, and begins a segment.
  int Join(uint32_t name = 0);
  // What a process is called here: a hash of its place in the tree of processes.
  static uint32_t NameOf(std::string_view root, std::string_view path);
  // The rank that `child` (its root and path) comes from; -1: none is known.
  [[nodiscard]] int OwnerOf(std::string_view root, std::string_view path) const;
  // The member's window ends here and is wanted for good: its process ends.
  void Close(int member);

  // The segment that is being filled.
  [[nodiscard]] uint32_t segment() const { return segment_.load(std::memory_order_acquire); }
  // Begins the next one, unless another member has done that since `seen` was the segment.
  void Advance(uint32_t seen);
  // The same for the first member that begins the `part`-th part (from 1) of its run, if the
  // segment has `least_bytes`. Parts with little in them share one. The first part shares none with
  // what came before it. True if this began one.
  bool AdvanceForPart(uint64_t part, uint64_t least_bytes);
  // The member's `step`-th step (from 1) has begun. True for the last of all members to begin its
  // first one.
  bool BeginStep(int member, uint64_t step);
  // How many steps have begun; 0 if the member has not begun its first.
  [[nodiscard]] uint64_t StepOf(int member) const;
  // So much more goes into the segment.
  void AddBytes(uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  // The member's window begins with this segment.
  void SetFirst(int member, uint32_t first);
  // True if a segment that is complete is in some member's window. Members whose process is gone
  // keep the window that they had.
  bool Wanted(uint32_t segment);
  // The same for who cannot tell whether a process is gone: members that did not say so are there.
  [[nodiscard]] bool MayBeWanted(uint32_t segment) const;

  // The `number`-th mark (from 1): what is kept at this moment stays. A later call with the same
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
  static constexpr uint32_t kBits = 64;
  struct Member {
    std::atomic<uint32_t> pid;    // 0: free
    std::atomic<uint32_t> first;  // its window
    std::atomic<uint32_t> end;    // after the last segment of it; 0: it goes on
    std::atomic<uint32_t> name;
  };
  [[nodiscard]] bool HasBegun(uint32_t member) const {
    return (begun_[member / kBits].load(std::memory_order_acquire) >> member % kBits & 1) != 0;
  }
  // A member is there that has not begun its first step.
  [[nodiscard]] bool AnyAtItsStart() const;

  std::atomic<uint64_t> magic_;  // of a file
  std::atomic<uint32_t> segment_;
  std::atomic<uint32_t> marked_end_;
  std::atomic<uint64_t> marks_;
  std::atomic<uint64_t> parts_;
  std::atomic<uint64_t> progress_ns_;
  std::atomic<uint64_t> hang_ns_;
  std::atomic<uint64_t> bytes_;  // in the segment so far
  std::atomic<uint64_t> step_;
  std::atomic<uint64_t> begun_[kMembers / kBits];  // a bit a member
  Member members_[kMembers];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(WindowBoard) <= 8192);

// Its name in the folder of the tails.
std::string WindowBoardName(const std::string& job_id);

}  // namespace deja::format

#endif  // DEJA_FORMAT_WINDOW_WINDOW_BOARD_H_
