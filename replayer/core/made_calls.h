// MadeCalls: which of the calls that others wait for have been made.
//
// Belongs to the session. Any thread.
#ifndef DEJA_REPLAYER_CORE_MADE_CALLS_H_
#define DEJA_REPLAYER_CORE_MADE_CALLS_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class MadeCalls {
 public:
  explicit MadeCalls(const ReplayPlan& plan) : plan_(plan) {}

  // A call that others may wait for was made.
  void Mark(uint32_t call) {
    if (!plan_.IsAwaited(call)) return;
    std::lock_guard<std::mutex> lock(mutex_);
    made_.insert(call);
    changed_.notify_all();
  }
  // Returns when it was.
  void Await(uint32_t call) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return made_.count(call) != 0; });
  }

 private:
  const ReplayPlan& plan_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<uint32_t> made_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_MADE_CALLS_H_
