// PayloadWindow: which payloads of a rank are kept when not all are, and for how long.
//
// Payloads go into numbered segments (WindowBoard); this decides when the next one begins and which
// old ones may go. With keep_steps a segment is some whole steps, more if they are short. It goes
// when no rank of the machine has one of them among its last keep_steps; what came before a rank's
// first step stays. Where there are checkpoints, the window reaches back to the newest one before
// the last keep_steps, so that a replay can start there. With keep_bytes or keep_seconds, segments
// have a size or a duration. In any case all segments together stay below keep_bytes and the
// budget, the oldest goes first, and what is marked stays.
//
// The same bytes are kept once within a segment. A reference in a later segment keeps them again
// there: a segment needs no other one.
//
// The budget is for all processes of the job on this machine: DiskLedger says which part of it is
// this one's.
//
// Owner: RankLog. Producer functions: any thread. Drainer functions: one thread at a time.
#ifndef DEJA_FORMAT_WINDOW_PAYLOAD_WINDOW_H_
#define DEJA_FORMAT_WINDOW_PAYLOAD_WINDOW_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/futex.h"
#include "format/window/disk_ledger.h"
#include "format/window/window_board.h"
#include "format/wire/messages.h"

namespace deja::format {

// Zero: no such limit.
struct WindowOptions {
  uint64_t keep_steps = 0;
  uint64_t keep_bytes = 0;
  uint64_t keep_seconds = 0;
  uint64_t disk_budget = 0;    // of all files that the job writes on this machine
  uint64_t machine_ranks = 1;  // of which this is a rank's part where there is no ledger
  // Short steps share a segment until it has so much: what may be there beyond keep_steps.
  uint64_t shared_bytes = 1 << 20;

  // True if anything that is kept may be dropped again.
  [[nodiscard]] bool Drops() const {
    return keep_steps != 0 || keep_bytes != 0 || keep_seconds != 0 || disk_budget != 0;
  }
};

// Where a process stands in the tree of processes: TraceHeader.origin.
struct WindowOrigin {
  std::string root;
  std::string path;
};

class PayloadWindow {
 public:
  explicit PayloadWindow(const WindowOptions& options);

  // ---- Producers

  // Where the payloads that come now are kept, or in a later segment.
  [[nodiscard]] uint32_t segment() const { return board().segment(); }
  // How many steps have begun.
  [[nodiscard]] uint64_t step() const {
    const int owner = owner_.load(std::memory_order_acquire);
    return owner >= 0 ? board().StepOf(owner) : step_.load(std::memory_order_relaxed);
  }
  // The `step`-th step begins, counting from 1.
  void BeginStep(uint64_t step);
  // A checkpoint was made at the beginning of the `step`-th step, which is the current one.
  void KeepCheckpoint(uint64_t step);
  // `bytes` came for `segment`; `waiting` of it and of those before are not in files yet. Begins
  // the next one if those of `segment` among them fill it. However far the drainer is behind, no
  // segment gets much larger than it should be.
  void AddBytes(uint32_t segment, uint64_t bytes, uint64_t waiting);
  // Ranks may rely on each other for what they keep under the same key.
  [[nodiscard]] uint64_t ShareKey(uint32_t segment) const {
    const bool stays = options_.keep_steps != 0 && step() == 0;
    return uint64_t{segment} << 1 | (stays ? 1 : 0);
  }
  // Goes over to the board that the ranks of the machine share; before the first payload that it
  // shares. False if there is no place on it.
  bool Join(WindowBoard& shared, uint32_t name);
  // A child process, which has no place on it, goes by it as soon as the rank that it comes from is
  // on it. `origin`: of the child.
  void Watch(WindowBoard& shared, const WindowOrigin& origin);
  // True if steps or time move the window, for child processes as well.
  [[nodiscard]] bool moves() const {
    return options_.keep_steps != 0 || options_.keep_seconds != 0;
  }
  // True for a child process that goes by the board of the ranks.
  [[nodiscard]] bool follows() const { return owner_.load(std::memory_order_relaxed) >= 0; }
  // From now on the budget is shared with the others of the job. Before there is a folder.
  void ShareBudget(const std::string& directory, const std::string& job_id);
  // The window ends as it is.
  void Close() { board().Close(member_.load()); }

  // ---- Drainer

  // The rank of this child process may be there by now.
  void LookForOwner();
  // Begins the next segment if `current` is full (`bytes`), or old.
  void Turn(uint32_t current, uint64_t bytes, uint64_t now_ns);
  // Begins the next segment if `current` is the one that is filled; returns that one.
  uint32_t Next(uint32_t current);
  // True if `segment`, which is complete since `ended_ns` and has what was meant for these numbers,
  // may go.
  [[nodiscard]] bool Expired(const Segment& segment, const SegmentRange& meant, uint64_t ended_ns,
                             uint64_t now_ns);
  // This process is a rank, and no child process any more. `earlier_bytes`: what earlier attempts
  // of the rank have on the disk.
  void BecomeRank(uint64_t earlier_bytes) {
    if (ledger_ != nullptr) ledger_->BecomeRank(earlier_bytes);
  }
  // Bytes on the disk, in all files; `last`: there will be no more.
  void Published(uint64_t bytes, bool last);
  // Bytes that all payload files may have together. `event_bytes`: of the other file.
  [[nodiscard]] uint64_t Limit(uint64_t event_bytes) const;
  [[nodiscard]] bool has_limit() const { return limit_ != kNoLimit; }
  // True if it is the budget, and not keep_bytes, that limits them.
  [[nodiscard]] bool limited_by_budget() const { return options_.keep_bytes == 0; }
  // Marks keep the segments before this one.
  [[nodiscard]] uint32_t marked_end() const { return board().marked_end(); }
  [[nodiscard]] bool Marked(uint32_t segment) const { return segment < marked_end(); }
  void Mark(uint64_t number) { board().Mark(number); }
  // This rank was in a collective.
  void Progress(uint64_t now_ns) { board().Progress(now_ns); }
  // True for one rank of the machine when none has been in a collective for so long.
  bool Hangs(uint64_t after_ns, uint64_t now_ns);

 private:
  static constexpr uint64_t kNoLimit = ~uint64_t{0};

  [[nodiscard]] WindowBoard& board() const { return *board_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t SegmentBytes() const;
  // What this process may have on the disk.
  [[nodiscard]] uint64_t Budget() const;

  const WindowOptions options_;
  const uint64_t limit_;  // about; Limit() knows better
  std::unique_ptr<DiskLedger> ledger_;
  const uint64_t steps_in_segment_;
  std::atomic<uint64_t> segment_bytes_;    // as the drainer knew it last
  std::atomic<uint32_t> filled_{0};        // a segment,
  std::atomic<uint64_t> filled_bytes_{0};  // and what this process has accepted for it
  mutable WindowBoard own_board_{};
  std::atomic<WindowBoard*> board_;
  std::atomic<int> member_;
  std::atomic<int> owner_{-1};           // the rank, for a child process
  std::atomic<WindowBoard*> watched_{};  // until it is there
  WindowOrigin origin_;
  std::atomic<uint64_t> step_{0};
  FutexMutex steps_mutex_;
  struct StepBegin {
    uint32_t segment = 0;
    bool checkpoint = false;
  };
  [[nodiscard]] uint64_t FirstStepOf(uint64_t step) const {
    return step < options_.keep_steps ? 1 : step - options_.keep_steps + 1;
  }
  // The window begins with `first`, or with the checkpoint before it. With steps_mutex_ held.
  void SetFirstStep(uint64_t first);

  std::vector<StepBegin> steps_;  // the last keep_steps ones
  bool has_checkpoint_ = false;   // at the beginning of the window or before it
  uint32_t checkpoint_segment_ = 0;
  uint64_t turned_ns_ = 0;  // when the current segment was first seen
  uint32_t turned_ = 0;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_WINDOW_PAYLOAD_WINDOW_H_
