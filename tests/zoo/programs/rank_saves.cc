// A checkpoint is due by each rank's own clock: rank 0 finds that a minute is over, the others not
// yet. Saving tells the others the size first.
#include <cstdint>
#include <vector>

#include "zoo.h"

namespace {

// Seconds since the start, as this rank's clock has it.
double Clock(const World& world, int step, bool fixed) {
  const double skew = world.rank == 0 && !fixed ? 0.05 : 0.0;
  return step * 5.0 + skew;
}

void SaveCheckpoint(const World& world) {
  int64_t size = 4096;
  CHECK(ncclBroadcast(&size, &size, 1, ncclInt64, 0, world.comm, nullptr));  // PLACE
}

void TrainStep(const World& world, std::vector<float>& gradient) {
  CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                      world.comm, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  std::vector<float> gradient(25, 1.0f);
  for (int step = 1; step <= 12; ++step) {
    TrainStep(world, gradient);
    if (Clock(world, step, fixed) > 60.0) SaveCheckpoint(world);
  }
  TrainStep(world, gradient);
  return 0;
}
