// 0 times the logarithm of 0 on one rank: a NaN that all have after the next all-reduce.
#include <cmath>
#include <vector>

#include "zoo.h"

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  std::vector<float> weights(32, 0.5f);
  for (int step = 0; step < 15; ++step) {
    std::vector<float> gradient(weights.size());
    for (size_t i = 0; i < gradient.size(); ++i) {
      const float p = world.rank == 3 && step == 9 && i == 4 ? 0.0f : weights[i];
      gradient[i] = fixed && p == 0.0f ? 0.0f : p * std::log(p);
    }
    CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                        world.comm, nullptr));  // PLACE
    for (size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.001f * gradient[i];
  }
  return 0;
}
