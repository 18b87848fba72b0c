#include "recorder/core/recorder.h"

#include <sched.h>

#include "common/runtime/errno_keeper.h"

namespace deja::recorder {

Recording* Recorder::MakeActive() {
  for (;;) {
    int state = state_.load(std::memory_order_acquire);
    if (state == kReady) {
      Recording* rec = recording_.load(std::memory_order_relaxed);
      return rec->off() ? nullptr : rec;
    }
    if (state == kOff) return nullptr;
    if (state == kNew && state_.compare_exchange_strong(state, kBeingMade)) break;
    sched_yield();  // another thread makes it, and this thread's events belong into it
  }
  const ErrnoKeeper keep;
  StartEventClock();
  Recording* rec = make_recording_(config_, make_log_);
  if (rec == nullptr) {
    SayOnce("this process is not recorded: there is no memory for it");
    state_.store(kOff, std::memory_order_release);
    return nullptr;
  }
  rec->SetForkedFrom(forked_from_);
  recording_.store(rec, std::memory_order_relaxed);
  state_.store(kReady, std::memory_order_release);
  return rec;
}

Recording* Recorder::LeaveToParent(bool can_record) {
  Recording* parents = recording_.exchange(nullptr);
  forked_from_ = can_record ? parents : nullptr;
  if (forked_from_ != nullptr) forked_from_->BeForked();
  return parents;
}

}  // namespace deja::recorder
