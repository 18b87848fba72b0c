#include "replayer/core/child_signals.h"

#include <algorithm>

#include "preload/engine/child_signal.h"
#include "preload/engine/child_signal_timer.h"

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

void ChildSignals::TakeReadingBack(uint32_t recorded) {
  if (thread_ != nullptr && recorded_ == recorded && readings_ != 0) --readings_;
}

void ChildSignals::CountFileCall(uint32_t recorded) {
  if (thread_ != nullptr && recorded_ == recorded) GiveDue();
}

bool ChildSignals::CountSleep(uint32_t recorded) {
  if (thread_ == nullptr || recorded_ != recorded) return false;
  const bool waited = preload::t_child_signal.waits;
  const size_t before = next_;
  GiveDue(true);
  return waited || next_ != before;
}

uint64_t ChildSignals::MissedAtExit(uint32_t recorded) const {
  if (thread_ == nullptr || recorded_ != recorded) return 0;
  const auto& signals = thread_->child_signals;
  const auto is_missed = [&](const RecordedSignal& signal) { return signal.events > events_; };
  return static_cast<uint64_t>(std::count_if(signals.begin() + static_cast<std::ptrdiff_t>(next_),
                                             signals.end(), is_missed));
}

bool ChildSignals::GiveWaiting() {
  if (!preload::t_child_signal.waits) return false;
  preload::StopChildSignalTimer();
  preload::t_child_signal.waits = false;
  preload::RunChildSignalHandler();
  return true;
}

// Not before the program has its handler.
bool ChildSignals::IsDue(const RecordedSignal& signal) const {
  if (preload::g_child_signal_handler.load() == nullptr) return false;
  if (events_ != signal.events) return events_ > signal.events;
  // How often a clock is read depends on other threads, where the interpreter's lock reads it.
  const bool has_read = signal.sleeps != 0 || readings_ >= signal.readings;
  return has_read && preload::t_child_signal.sleeps >= signal.sleeps &&
         preload::t_child_signal.file_calls >= signal.file_calls;
}

void ChildSignals::GiveDue(bool at_sleep) {
  // Longer than in a recording: a machine under load may leave the thread waiting before the call.
  constexpr uint32_t kDelayMs = 900;
  GiveWaiting();
  const auto& signals = thread_->child_signals;
  for (; next_ < signals.size() && IsDue(signals[next_]); ++next_) {
    const RecordedSignal& signal = signals[next_];
    const bool is_here = signal.exact || at_sleep || events_ > signal.events;
    preload::t_child_signal.waits = !is_here && preload::StartChildSignalTimer(kDelayMs);
    if (!preload::t_child_signal.waits) preload::RunChildSignalHandler();
  }
}

}  // namespace deja::replayer
