#include "replayer/inputs/redacted_names.h"

namespace deja::replayer {

const RecordedInput* RedactedNames::Find(const ReplayPlan& plan, uint32_t api, uint64_t key) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [answer, is_new] = answers_.try_emplace({api, key}, plan.inputs().size());
  if (is_new) {
    size_t& next = next_[api];
    while (next < plan.inputs().size() && plan.inputs()[next].api != api) ++next;
    answer->second = next;
    if (next < plan.inputs().size()) ++next;
  }
  return answer->second < plan.inputs().size() ? &plan.inputs()[answer->second] : nullptr;
}

}  // namespace deja::replayer
