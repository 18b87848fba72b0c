// Drainer: moves what threads have put into the tail to the rank's folder.
//
// Normally its own background thread does; where none can be made, the threads that wait for room
// do it themselves. Knows whether the process is a rank already. When the disk refuses, it stops
// writing, says so once on stderr and in the trace, and keeps the program going.
//
// Owner: RankLog. Functions: any thread, not in signal handlers, unless said otherwise.
#ifndef DEJA_FORMAT_LOG_DRAINER_H_
#define DEJA_FORMAT_LOG_DRAINER_H_

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/runtime/futex.h"
#include "format/log/background.h"
#include "format/log/process_file.h"
#include "format/log/rank_writer.h"
#include "format/tail/event_ring.h"
#include "format/tail/payload_arena.h"
#include "format/tail/tail.h"
#include "format/window/payload_window.h"
#include "format/window/shared_pieces.h"

namespace deja::format {

class Drainer {
 public:
  // `rings`: all of the tail's, attached before they are used. Everything outlives the drainer.
  struct Options {
    std::string trace_dir;
    BackgroundOptions background;
    uint64_t hang_after_seconds = 0;
    uint64_t base_memory = 0;
    CodecEffort effort = CodecEffort::kSmall;
    WrapFile wrap = nullptr;
  };
  Drainer(Tail& tail, PayloadArena& arena, PayloadWindow& window, EventRing* rings,
          const Options& options);
  // Ends the thread. A recorder never does that; tests do.
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  // A ring or the arena is filling up. No system call if the thread is awake already.
  void Wake() {
    if (wake_.load(std::memory_order_relaxed) == 0) WakeSlowly();
  }

  // Waiting for room: `Seen` first, then try, then wait. Wait is false when there is no hope: the
  // caller drops what it has.
  [[nodiscard]] uint32_t Seen() const { return space_.load(std::memory_order_acquire); }
  bool Wait(uint32_t seen, const std::atomic<bool>& off, int& waited);

  // Nothing more is taken.
  [[nodiscard]] const std::atomic<bool>& events_off() const { return events_off_; }
  [[nodiscard]] const std::atomic<bool>& payloads_off() const { return payloads_off_; }
  void CountLostEvent() { events_lost_.fetch_add(1, std::memory_order_relaxed); }
  void CountLostPayload(uint64_t bytes) {
    payloads_lost_.fetch_add(1, std::memory_order_relaxed);
    payload_bytes_lost_.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t events_lost() const { return events_lost_.load(); }
  [[nodiscard]] uint64_t payloads_lost() const { return payloads_lost_.load(); }
  [[nodiscard]] uint64_t payload_bytes_lost() const { return payload_bytes_lost_.load(); }

  // Makes the folder of a rank, or of a child process, with `header`, and drains into it from then
  // on. Errors: the folder or a file could not be made.
  Status BecomeRank(TraceHeader header);
  Status BecomeChild(TraceHeader header);
  // Learns that this rank cannot keep payloads any more. Outlives the drainer.
  void SetShared(SharedPieces* shared) { shared_.store(shared, std::memory_order_release); }
  [[nodiscard]] bool is_rank() const { return is_rank_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& folder() const { return is_rank() ? folder_ : no_folder_; }

  // Writes out what rings and arena hold now. Any thread; blocks.
  void Flush();
  // Completes the files and takes no more. Any thread; a second call waits for the first.
  void Finish();
  // After Finish: waits for the background thread, if all is done.
  void EndThread();
  // Only closes descriptors; the mapping is not there in a child.
  void AbandonInChild();

 private:
  static void* ThreadMain(void* self);
  void Run();
  void WakeSlowly();
  bool EnsureThread();
  bool TakeNoEvents();
  void GiveUp(const char* reason);

  // All below: with mutex_ held and signals blocked.
  void Pass(bool forced);
  bool EnsureWriter();
  Status MoveToRankFolder(TraceHeader& header);
  Status MoveToChildFolder(TraceHeader& header);
  Status MoveTo(const std::string& target, const TraceHeader& header);
  Status Move(TraceHeader& header, bool as_rank);
  // True if ring `i` has been attached.
  [[nodiscard]] bool InUse(uint32_t i) {
    return tail_.ring(i).used.load(std::memory_order_acquire) != 0;
  }
  void Drain();
  bool DrainPayloads();
  Status WriteBlock(const BlockHeader& block);
  Status TryBlock(const BlockHeader& block);
  Status MakePlaceFor(const BlockHeader& block);
  Status StayWithinLimit(uint64_t more);
  void Publish(bool last);
  void MoveWindow();
  Status CompleteSegment();
  void DropExpired();
  void LookForMark();
  void LookForHang();
  bool DropSegment(const SegmentFile& segment, const char* reason);
  bool DropOldest(const char* reason);
  void DrainEvents();
  void DrainClocks();
  void DrainEmergencySlots();
  bool WriteBatch();
  void StopSharing();
  void EventsFailed(const Error& error);
  void PayloadsFailed(const Error& error);
  std::string EncodeDegraded(const std::string& reason);
  void AddDegraded(const std::string& reason);
  void Say(const std::string& what);
  void FreeSpace();
  void FinishNow();
  bool TryAgain();
  void CountUndrained();
  bool FinishFiles();
  void RemovePending();

  Tail& tail_;
  PayloadArena& arena_;
  PayloadWindow& window_;
  EventRing* const rings_;
  const std::string trace_dir_;
  const BackgroundOptions background_;
  const uint64_t hang_after_ns_;
  const uint64_t base_memory_;
  const CodecEffort effort_;
  const int owner_pid_;
  const WrapFile wrap_;

  std::atomic<uint32_t> wake_{0};      // 1: the thread should come
  std::atomic<uint32_t> space_{0};     // counts how often room was made
  std::atomic<uint32_t> waiters_{0};   // threads that wait for room
  std::atomic<uint32_t> finished_{0};  // 1: all is done (futex of Finish)
  std::atomic<bool> finish_requested_{false};
  std::atomic<bool> events_off_{false};
  std::atomic<bool> payloads_off_{false};
  std::atomic<uint64_t> events_lost_{0};
  std::atomic<uint64_t> payloads_lost_{0};
  std::atomic<uint64_t> payload_bytes_lost_{0};
  std::atomic<bool> is_rank_{false};  // or a child with a folder
  bool is_child_ = false;
  std::atomic<SharedPieces*> shared_{nullptr};

  enum class ThreadState : uint32_t { kNone, kRunning, kImpossible };
  std::atomic<ThreadState> thread_state_{ThreadState::kNone};
  std::atomic<bool> stop_{false};
  pthread_t thread_{};
  FutexMutex thread_mutex_;

  FutexMutex mutex_;
  SpareFds spare_;
  std::unique_ptr<RankWriter> writer_;
  std::string folder_;
  const std::string no_folder_;
  std::string label_;                     // "rank 3"
  uint64_t ring_heads_[kTailRings] = {};  // up to here each ring is drained in this pass
  uint64_t ring_tails_[kTailRings] = {};  // up to here each ring is in the batch
  bool events_too_ = false;               // also if payloads are still being copied
  bool said_ = false;
  bool payloads_failed_ = false;
  bool said_dropping_ = false;
  uint64_t next_mark_ = 1;
  uint64_t ops_seen_ = 0;
  bool told_folder_ = false;  // Degraded is in a batch, from where it happened
  bool told_tail_ = false;    // and in an emergency slot
  std::string degraded_reason_;
  uint64_t log_seq_ = 0;
  // Accepted, and given up when the log was finished on a full disk.
  uint64_t undrained_events_ = 0;
  uint64_t undrained_payloads_ = 0;
  uint64_t undrained_payload_bytes_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_LOG_DRAINER_H_
