#include "format/payloads/predicted_states.h"

#include <mutex>

namespace deja::format {
namespace {

size_t BytesOf(const PredictedState& state) {
  const OptimizerState& values = state.values;
  return (values.parameters.size() + values.first.size() + values.second.size()) * sizeof(float);
}

}  // namespace

std::shared_ptr<const PredictedState> PredictedStates::Find(uint32_t segment, uint64_t at) {
  const std::lock_guard<FutexMutex> lock(mutex_);
  const auto found = by_place_.find({segment, at});
  if (found == by_place_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found->second);
  return found->second->state;
}

void PredictedStates::Keep(uint32_t segment, uint64_t at,
                           std::shared_ptr<const PredictedState> state) {
  const size_t bytes = BytesOf(*state);
  if (bytes > most_bytes_) return;
  const std::lock_guard<FutexMutex> lock(mutex_);
  const Place place(segment, at);
  if (by_place_.count(place) != 0) return;
  kept_.push_front({place, std::move(state)});
  by_place_[place] = kept_.begin();
  for (bytes_ += bytes; bytes_ > most_bytes_; kept_.pop_back()) {
    bytes_ -= BytesOf(*kept_.back().state);
    by_place_.erase(kept_.back().place);
  }
}

}  // namespace deja::format
