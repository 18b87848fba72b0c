#include "metrics.h"

namespace digits {
namespace {

// `mine` of every rank, by rank.
template <class T>
std::vector<T> Gather(Device& device, const Communicator& world, const std::vector<T>& mine,
                      const char* what) {
  const size_t count = mine.size();
  Array<T> gathered(device, count * static_cast<size_t>(world.size()));
  device.CopyIn(gathered.data() + count * static_cast<size_t>(world.rank()), mine.data(),
                count * sizeof(T));
  world.AllGather(gathered.data(), count, what);
  return gathered.Get();
}

}  // namespace

Metrics GatherMetrics(Device& device, const Communicator& world, const Metrics& mine) {
  const std::vector<float> own = {mine.loss, mine.correct, mine.samples};
  const std::vector<float> all = Gather(device, world, own, "metrics");
  Metrics sum;
  for (size_t i = 0; i < all.size(); i += own.size()) {
    sum.loss += all[i];
    sum.correct += all[i + 1];
    sum.samples += all[i + 2];
  }
  return sum;
}

std::vector<uint64_t> GatherHashes(Device& device, const Communicator& world, uint64_t mine) {
  return Gather(device, world, std::vector<uint64_t>{mine}, "weight hashes");
}

}  // namespace digits
