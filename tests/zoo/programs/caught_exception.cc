// One rank runs out of memory, catches it and goes on with the next batch; the others do not know.
#include <new>
#include <vector>

#include "zoo.h"

namespace {

void Gather(const World& world) {
  float loss = 1.0f;
  std::vector<float> all(static_cast<size_t>(world.size));
  CHECK(ncclAllGather(&loss, all.data(), 1, ncclFloat, world.comm, nullptr));
}

void Backward(const World& world, std::vector<float>& gradient) {
  CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                      world.comm, nullptr));  // PLACE
}

void Step(const World& world, bool too_large, std::vector<float>& gradient) {
  Gather(world);
  if (too_large) throw std::bad_alloc();
  Backward(world, gradient);
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  std::vector<float> gradient(512, 1.0f);
  for (int step = 0; step < 20; ++step) {
    const bool too_large = !fixed && world.rank == 1 && step == 8;
    try {
      Step(world, too_large, gradient);
    } catch (const std::bad_alloc&) {
      std::fprintf(stderr, "rank %d: out of memory, batch skipped\n", world.rank);
    }
  }
  return 0;
}
