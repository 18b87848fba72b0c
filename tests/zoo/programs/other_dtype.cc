// A metric is kept as double on the rank that has met a special sample, as float on the others.
#include <vector>

#include "zoo.h"

namespace {

template <typename T>
void Reduce(const World& world, std::vector<T>& metric, ncclDataType_t type) {
  CHECK(ncclAllReduce(metric.data(), metric.data(), metric.size(), type, ncclSum, world.comm,
                      nullptr));  // PLACE
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  for (int step = 0; step < 20; ++step) {
    std::vector<float> gradient(1000, static_cast<float>(world.rank + step));
    CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                        world.comm, nullptr));
    const bool special = world.rank == 2 && step == 12;
    std::vector<double> wide = {1.0, 2.0};
    std::vector<float> narrow = {1.0f, 2.0f};
    if (special && !fixed)
      Reduce(world, wide, ncclDouble);
    else
      Reduce(world, narrow, ncclFloat);
  }
  return 0;
}
