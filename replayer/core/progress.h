// Progress: how much of the recording the program has made, and what is left of it.
//
// Belongs to the session; constant in size, and locks nothing. Any thread.
#ifndef DEJA_REPLAYER_CORE_PROGRESS_H_
#define DEJA_REPLAYER_CORE_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "replayer/core/child_signals.h"
#include "replayer/core/thread_state.h"
#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class Progress {
 public:
  // `served`: where what was recorded and is made is counted, too, for others to see; null:
  // nowhere.
  explicit Progress(const ReplayPlan& plan, std::atomic<uint64_t>* served = nullptr);

  // The program goes on after the plan's checkpoint.
  void StartLate();

  // Something happened that a hanging program does not do.
  void CountActivity() {
    CountAttempt();
    CountServed();
  }
  // The same, but a thread that looks for something again and again does it, too.
  void CountAttempt() { activity_.fetch_add(1, std::memory_order_relaxed); }
  // The replay has got on, or has said itself that it does not.
  void CountServed() const { served_->fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t activity() const { return activity_.load(std::memory_order_relaxed); }

  // One of the events that recorded thread `recorded` has to make was made.
  void Consume(uint32_t recorded);
  [[nodiscard]] uint64_t remaining() const { return remaining_.load(); }
  [[nodiscard]] uint64_t RemainingOf(uint32_t recorded) const {
    return recorded == kNone ? 0 : remaining_of_[recorded].load();
  }
  // How many of them it has made.
  [[nodiscard]] uint64_t MadeBy(uint32_t recorded) const {
    return plan_.threads()[recorded].strict_events - RemainingOf(recorded);
  }
  // Where in its recording the thread is, as ClockStream counts.
  [[nodiscard]] uint64_t Segment(const ThreadState& thread) const {
    if (thread.recorded == kNone) return 0;
    return MadeBy(thread.recorded) + thread.entropy_served + (thread.started_late ? 1 : 0);
  }

  // Random bytes that were recorded have been served. If some are left, a recording without an end
  // has not reached it yet.
  void ConsumeEntropy() {
    CountServed();
    entropy_left_.fetch_sub(1);
  }
  [[nodiscard]] bool AllConsumed() const {
    return remaining() == 0 && entropy_left_.load() <= 0 && launches_left_.load() <= 0;
  }

  // A graph was launched for the `launch`-th time; `call` is one of those that it contains.
  void CountLaunch(uint32_t call, uint64_t launch, bool produced);

  // Recorded thread `recorded` has met another process as it did in the recording.
  void ConsumeMeeting(uint32_t recorded);
  [[nodiscard]] uint64_t MeetingsOf(uint32_t recorded) const {
    return plan_.threads()[recorded].meetings - meetings_of_[recorded].load();
  }
  // How often threads other than `recorded` are still to do so.
  [[nodiscard]] uint64_t MeetingsLeftBut(uint32_t recorded) const;

  // It has sent, received or lost something over a socket to another process of the rank.
  void CountTransfer(uint32_t recorded) { CountEvent(recorded); }

  // How many of RecordedThread::CountedEvents() it has made; thread `recorded` asks.
  [[nodiscard]] uint64_t CountedBy(uint32_t recorded) const {
    return counted_of_[recorded].load(std::memory_order_relaxed);
  }

  ChildSignals& child_signals() { return child_signals_; }

  // Recorded chunks of connections that the program has not received yet. True if the last of them
  // was received and nothing else is left.
  [[nodiscard]] bool SetTransfersLeft(uint64_t left) {
    return transfers_left_.exchange(left) != 0 && left == 0 && remaining() == 0;
  }
  [[nodiscard]] uint64_t transfers_left() const { return transfers_left_.load(); }

  // What to do when the program makes a call that is not in the recording. If nothing ends the
  // thread's recording, the thread waits for the end of the replay (no return). Otherwise this is a
  // divergence.
  enum class Missing { kEndOfRecording, kDivergence };
  [[nodiscard]] Missing Classify(const ThreadState& thread) const;

  // In its scope the calling thread computes with other ranks an operation that ended in the
  // recording, there or here. The process is not to be ended meanwhile.
  class Needed {
   public:
    Needed(Progress& progress, bool needed) : count_(needed ? &progress.needed_ : nullptr) {
      if (count_ != nullptr) count_->fetch_add(1);
    }
    ~Needed() {
      if (count_ != nullptr) count_->fetch_sub(1);
    }
    Needed(const Needed&) = delete;
    Needed& operator=(const Needed&) = delete;

   private:
    std::atomic<uint32_t>* count_;
  };
  [[nodiscard]] bool IsNeeded() const { return needed_.load() != 0; }
  // In its scope recorded thread `recorded` is held back until others have done something before
  // it. If another thread waits for its turn at a lock, it is not held back.
  class Held {
   public:
    Held(Progress& progress, uint32_t recorded) : progress_(progress), recorded_(recorded) {
      progress_.wanted_[recorded_].store(false);
      progress_.held_.fetch_add(1);
    }
    ~Held() { progress_.held_.fetch_sub(1); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    [[nodiscard]] bool IsWanted() const { return progress_.wanted_[recorded_].load(); }

   private:
    Progress& progress_;
    uint32_t recorded_;
  };
  [[nodiscard]] bool IsAnyHeld() const { return held_.load(std::memory_order_relaxed) != 0; }
  // A thread waits for the turn of recorded thread `recorded`.
  void Want(uint32_t recorded) { wanted_[recorded].store(true); }

 private:
  void CountEvent(uint32_t recorded) {
    if (recorded == kNone) return;
    counted_of_[recorded].fetch_add(1, std::memory_order_relaxed);
    child_signals_.CountEvent(recorded);
  }

  const ReplayPlan& plan_;
  ChildSignals child_signals_;
  std::unique_ptr<std::atomic<uint64_t>[]> remaining_of_;  // by recorded thread
  std::unique_ptr<std::atomic<uint64_t>[]> counted_of_;    // by recorded thread
  std::unique_ptr<std::atomic<bool>[]> wanted_;            // by recorded thread
  std::unique_ptr<std::atomic<uint64_t>[]> meetings_of_;   // by recorded thread, left
  std::atomic<uint64_t> remaining_{0};
  std::atomic<int64_t> entropy_left_{0};
  std::atomic<int64_t> launches_left_{0};
  std::atomic<uint64_t> transfers_left_{0};
  std::atomic<uint64_t> activity_{0};
  std::atomic<uint64_t> served_here_{0};
  std::atomic<uint64_t>* const served_;
  std::atomic<uint32_t> held_{0};
  std::atomic<uint32_t> needed_{0};
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_PROGRESS_H_
