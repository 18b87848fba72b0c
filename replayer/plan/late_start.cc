#include "replayer/plan/late_start.h"

#include <algorithm>

#include "replayer/plan/replay_plan.h"

namespace deja::replayer {
namespace {

ThreadPosition EndOf(const RecordedThread& thread) {
  ThreadPosition end;
  end.calls = static_cast<uint32_t>(thread.calls.size());
  end.snapshots = static_cast<uint32_t>(thread.snapshots.size());
  end.ends = static_cast<uint32_t>(thread.ends.size());
  end.strict_events = thread.strict_events;
  end.entropy_events = thread.entropy_events;
  for (const auto& [api, calls] : thread.by_api)
    end.by_api[api] = static_cast<uint32_t>(calls.size());
  for (const auto& [api, inputs] : thread.entropy)
    end.entropy[api] = static_cast<uint32_t>(inputs.size());
  for (const auto& [key, inputs] : thread.by_key)
    end.by_key[key] = static_cast<uint32_t>(inputs.size());
  return end;
}

}  // namespace

void LateStart::Pass(uint32_t thread, std::span<const RecordedThread> threads) {
  if (passed_.size() <= thread) passed_.resize(thread + 1);
  if (positions_.size() <= thread) positions_.resize(thread + 1);
  if (passed_[thread]) return;
  passed_[thread] = true;
  positions_[thread] = EndOf(threads[thread]);
}

void LateStart::AddOperation(uint32_t comm, uint64_t seq) {
  uint64_t& last = operations_[comm];
  last = std::max(last, seq);
}

void LateStart::Finish(std::span<const RecordedThread> threads) {
  passed_.resize(threads.size());
  positions_.resize(threads.size());
  for (size_t i = 0; i < threads.size(); ++i)
    if (!passed_[i]) positions_[i] = EndOf(threads[i]);
}

}  // namespace deja::replayer
