// One rank logs once more than the others: an all-gather too many, of the size of those that
// follow.
#include <vector>

#include "zoo.h"

namespace {

void LogLoss(const World& world, float loss) {
  std::vector<float> all(static_cast<size_t>(world.size));
  CHECK(ncclAllGather(&loss, all.data(), 1, ncclFloat, world.comm, nullptr));
}

void LogOutlier(const World& world, float loss) {
  std::vector<float> all(static_cast<size_t>(world.size));
  CHECK(ncclAllGather(&loss, all.data(), 1, ncclFloat, world.comm, nullptr));  // PLACE
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  for (int step = 0; step < 30; ++step) {
    const float loss = world.rank == 1 && step == 17 ? 99.0f : 1.0f;
    if (loss > 50.0f && !fixed) LogOutlier(world, loss);
    LogLoss(world, loss);
    std::vector<float> gradient(64, loss);
    CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                        world.comm, nullptr));
  }
  return 0;
}
