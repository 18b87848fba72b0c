// Two models are trained one after the other; one rank still has the first one when it reduces.
#include <vector>

#include "zoo.h"

namespace {

void Sync(const World& world, std::vector<float>& gradient) {
  CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                      world.comm, nullptr));  // PLACE
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  for (const size_t size : {3916, 2867}) {
    std::vector<float> gradient(size, 1.0f);
    for (int step = 0; step < 8; ++step) {
      const bool stale = !fixed && world.rank == 2 && size == 2867 && step == 0;
      if (stale) {
        std::vector<float> old(3916, 1.0f);
        Sync(world, old);
      } else {
        Sync(world, gradient);
      }
    }
  }
  return 0;
}
