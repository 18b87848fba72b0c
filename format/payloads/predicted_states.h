// PredictedStates: the optimizer's states that were computed last, so that the next checkpoint of a
// chain does not compute them once more (ChunkReader).
//
// Bounded in memory; the state that was asked for longest ago goes first. Any thread.
#ifndef DEJA_FORMAT_PAYLOADS_PREDICTED_STATES_H_
#define DEJA_FORMAT_PAYLOADS_PREDICTED_STATES_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "common/runtime/futex.h"
#include "format/payloads/prediction.h"

namespace deja::format {

// A prediction's state, and what it took to compute it.
struct PredictedState {
  OptimizerState values;
  // Pieces of gradients, by place of the prediction: of this one and of those that it builds on.
  std::map<uint64_t, uint64_t> gradient_pieces;
};

class PredictedStates {
 public:
  // `most_bytes` of values are kept.
  explicit PredictedStates(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  PredictedStates(const PredictedStates&) = delete;
  PredictedStates& operator=(const PredictedStates&) = delete;

  // The state of the prediction in the frame at `at` of a segment's payload file; null: not kept.
  [[nodiscard]] std::shared_ptr<const PredictedState> Find(uint32_t segment, uint64_t at);
  void Keep(uint32_t segment, uint64_t at, std::shared_ptr<const PredictedState> state);

 private:
  // The states of 20 whole chunks.
  static constexpr size_t kMostBytes = 64 << 20;
  using Place = std::pair<uint32_t, uint64_t>;
  struct Kept {
    Place place;
    std::shared_ptr<const PredictedState> state;
  };

  const size_t most_bytes_;
  FutexMutex mutex_;      // guards what follows
  std::list<Kept> kept_;  // what was asked for last comes first
  std::map<Place, std::list<Kept>::iterator> by_place_;
  size_t bytes_ = 0;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_PREDICTED_STATES_H_
