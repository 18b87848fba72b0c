#include "metrics.h"

namespace digits {

Metrics GatherMetrics(const Communicator& world, const Metrics& mine) {
  constexpr size_t kFields = 3;
  const size_t ranks = static_cast<size_t>(world.size());
  std::vector<float> all(ranks * kFields);
  float* own = &all[static_cast<size_t>(world.rank()) * kFields];
  own[0] = mine.loss;
  own[1] = mine.correct;
  own[2] = mine.samples;
  world.AllGather(all.data(), kFields, "metrics");
  Metrics sum;
  for (size_t rank = 0; rank < ranks; ++rank) {
    sum.loss += all[rank * kFields];
    sum.correct += all[rank * kFields + 1];
    sum.samples += all[rank * kFields + 2];
  }
  return sum;
}

std::vector<uint64_t> GatherHashes(const Communicator& world, uint64_t mine) {
  std::vector<uint64_t> all(static_cast<size_t>(world.size()));
  all[static_cast<size_t>(world.rank())] = mine;
  world.AllGather(all.data(), 1, "weight hashes");
  return all;
}

}  // namespace digits
