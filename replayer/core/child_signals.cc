#include "replayer/core/child_signals.h"

#include "preload/engine/child_signal.h"

namespace deja::replayer {

ChildSignals::ChildSignals(const ReplayPlan& plan) {
  for (uint32_t i = 0; i < plan.threads().size(); ++i) {
    const RecordedThread& thread = plan.threads()[i];
    if (!thread.child_signals.empty()) {
      thread_ = &thread;
      recorded_ = i;
    }
    are_recorded_ |= !thread.child_signals.empty() || thread.was_interrupted;
  }
}

void ChildSignals::LeaveLive() {
  thread_ = nullptr;
  are_recorded_ = false;
}

void ChildSignals::CountEvent(uint32_t recorded) {
  if (thread_ == nullptr || recorded_ != recorded) return;
  ++events_;
  readings_ = 0;
  GiveDue();
}

void ChildSignals::CountReading(uint32_t recorded) {
  if (thread_ == nullptr || recorded_ != recorded) return;
  ++readings_;
  GiveDue();
}

void ChildSignals::GiveDue() {
  for (; next_ < thread_->child_signals.size(); ++next_) {
    const RecordedSignal& next = thread_->child_signals[next_];
    if (events_ < next.events || (events_ == next.events && readings_ < next.readings)) return;
    preload::RunChildSignalHandler();
  }
}

}  // namespace deja::replayer
