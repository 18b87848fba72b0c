// Recorder: finds, or makes, the recording of this process for whichever call comes first.
//
// One per process, never destroyed. Any thread, under the guard (preload/process/guard.h). errno is
// left as it was.
#ifndef DEJA_RECORDER_CORE_RECORDER_H_
#define DEJA_RECORDER_CORE_RECORDER_H_

#include <atomic>

#include "preload/calls/life_calls.h"
#include "recorder/core/config.h"
#include "recorder/core/recording.h"

namespace deja::recorder {

class Recorder {
 public:
  // Makes a recording with all its parts, in memory of its own; null: there is none.
  using RecordingFactory = Recording* (*)(const Config& config, LogFactory make_log);

  // `life`: what a call that ends the process tells so.
  Recorder(const Config& config, LogFactory make_log, RecordingFactory make_recording,
           preload::LifeCalls& life)
      : config_(config), make_log_(make_log), make_recording_(make_recording), life_(life) {}

  // The recording of this process; null when nothing is recorded. Made on first use.
  Recording* Active() {
    if (state_.load(std::memory_order_acquire) != kReady) [[unlikely]]
      return MakeActive();
    Recording* rec = recording_.load(std::memory_order_relaxed);
    return rec->off() ? nullptr : rec;
  }
  // The same, if it has been made. Async-signal-safe.
  [[nodiscard]] Recording* Made() const { return recording_.load(std::memory_order_acquire); }

  // In a forked child, before and after what else it forgets of its parent. The parent's recording,
  // which is returned, is left alone. The child's is made with its first event; not at all if it
  // `can_record` nothing.
  Recording* LeaveToParent(bool can_record);
  void BeginInChild(bool can_record) {
    state_.store(can_record ? kNew : kOff, std::memory_order_release);
  }

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] preload::LifeCalls& life() const { return life_; }

 private:
  Recording* MakeActive();

  const Config config_;
  const LogFactory make_log_;
  const RecordingFactory make_recording_;
  preload::LifeCalls& life_;
  // Fork children and tests start from nothing again.
  enum State : int { kNew, kBeingMade, kReady, kOff };
  std::atomic<int> state_{kNew};
  std::atomic<Recording*> recording_{nullptr};
  Recording* forked_from_ = nullptr;  // of the process that has forked this one
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_CORE_RECORDER_H_
