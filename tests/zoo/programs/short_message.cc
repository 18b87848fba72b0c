// A stage sends the last, smaller batch as it is; the next one receives a full one.
#include <algorithm>
#include <vector>

#include "zoo.h"

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  constexpr size_t kBatch = 64;
  const size_t samples = fixed ? 640 : 630;
  for (size_t done = 0; done < samples; done += kBatch) {
    std::vector<float> activations(kBatch, static_cast<float>(world.rank));
    const size_t count = std::min(kBatch, samples - done);
    if (world.rank > 0)
      CHECK(ncclRecv(activations.data(), kBatch, ncclFloat, world.rank - 1, world.comm, nullptr));
    if (world.rank + 1 < world.size)
      CHECK(ncclSend(activations.data(), count, ncclFloat, world.rank + 1, world.comm,  // PLACE
                     nullptr));
  }
  return 0;
}
