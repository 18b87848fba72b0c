#include "replayer/core/progress.h"

namespace deja::replayer {

Progress::Progress(const ReplayPlan& plan, std::atomic<uint64_t>* served)
    : plan_(plan), child_signals_(plan), served_(served != nullptr ? served : &served_here_) {
  const auto& threads = plan.threads();
  remaining_of_ = std::make_unique<std::atomic<uint64_t>[]>(threads.size() + 1);
  counted_of_ = std::make_unique<std::atomic<uint64_t>[]>(threads.size() + 1);
  wanted_ = std::make_unique<std::atomic<bool>[]>(threads.size() + 1);
  meetings_of_ = std::make_unique<std::atomic<uint64_t>[]>(threads.size() + 1);
  uint64_t total = 0;
  for (size_t i = 0; i < threads.size(); ++i) {
    remaining_of_[i] = threads[i].strict_events;
    meetings_of_[i] = threads[i].meetings;
    total += threads[i].strict_events;
    for (const auto& [api, inputs] : threads[i].entropy)
      entropy_left_ += static_cast<int64_t>(inputs.size());
  }
  for (const auto& [call, launches] : plan.launches())
    launches_left_ += static_cast<int64_t>(launches.more());
  remaining_ = total;
}

void Progress::StartLate() {
  const LateStart& start = *plan_.start();
  uint64_t total = 0;
  int64_t entropy = 0;
  for (uint32_t i = 0; i < plan_.threads().size(); ++i) {
    const RecordedThread& thread = plan_.threads()[i];
    const ThreadPosition& position = start.PositionOf(i);
    remaining_of_[i] = thread.strict_events - position.strict_events;
    total += thread.strict_events - position.strict_events;
    entropy += static_cast<int64_t>(thread.entropy_events - position.entropy_events);
  }
  remaining_ = total;
  entropy_left_ = entropy;
}

void Progress::Consume(uint32_t recorded) {
  if (recorded == kNone || remaining_of_[recorded].load() == 0) return;
  CountServed();
  remaining_of_[recorded].fetch_sub(1);
  remaining_.fetch_sub(1);
  CountEvent(recorded);
}

void Progress::ConsumeMeeting(uint32_t recorded) {
  CountAttempt();
  if (recorded == kNone || meetings_of_[recorded].load() == 0) return;
  CountServed();
  meetings_of_[recorded].fetch_sub(1);
  CountEvent(recorded);
}

uint64_t Progress::MeetingsLeftBut(uint32_t recorded) const {
  uint64_t left = 0;
  for (uint32_t i = 0; i < plan_.threads().size(); ++i)
    if (i != recorded) left += meetings_of_[i].load();
  return left;
}

void Progress::CountLaunch(uint32_t call, uint64_t launch, bool produced) {
  CountActivity();
  const auto it = plan_.launches().find(call);
  // A call's first launch is the call itself; of two directions the results are counted.
  if (launch != 0 && it != plan_.launches().end() && it->second.produced.empty() != produced)
    launches_left_.fetch_sub(1);
}

Progress::Missing Progress::Classify(const ThreadState& thread) const {
  if (thread.recorded == kNone) return Missing::kEndOfRecording;
  if (RemainingOf(thread.recorded) != 0) return Missing::kDivergence;
  return plan_.threads()[thread.recorded].ended ? Missing::kDivergence : Missing::kEndOfRecording;
}

}  // namespace deja::replayer
