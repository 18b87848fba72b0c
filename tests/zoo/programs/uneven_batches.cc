// The samples do not divide by the ranks: rank 0 has one batch more than the others.
#include <vector>

#include "zoo.h"

namespace {

int Batches(const World& world, bool fixed) {
  constexpr int kBatches = 121;
  const int each = kBatches / world.size;
  return each + (!fixed && world.rank < kBatches % world.size ? 1 : 0);
}

void Backward(const World& world, std::vector<float>& gradient) {
  CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                      world.comm, nullptr));  // PLACE
}

void GatherLosses(const World& world, float loss) {
  std::vector<float> losses(static_cast<size_t>(world.size));
  CHECK(ncclAllGather(&loss, losses.data(), 1, ncclFloat, world.comm, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  std::vector<float> gradient(256, 1.0f);
  const int batches = Batches(world, IsFixed(argc, argv));
  for (int batch = 0; batch < batches; ++batch) Backward(world, gradient);
  GatherLosses(world, 0.5f);
  return 0;
}
