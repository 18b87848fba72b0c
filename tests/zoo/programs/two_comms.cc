// Two communicators of the same ranks: one rank reduces the losses first, the other the gradients.
#include <vector>

#include "zoo.h"

namespace {

void Reduce(ncclComm_t comm, std::vector<float>& values) {
  CHECK(ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat, ncclSum, comm,
                      nullptr));  // PLACE
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  ncclComm_t losses = nullptr;
  CHECK(ncclCommSplit(world.comm, 0, world.rank, &losses, nullptr));
  std::vector<float> gradient(1000, 1.0f);
  std::vector<float> loss(1, 1.0f);
  for (int step = 0; step < 10; ++step) {
    const bool loss_first = !fixed && world.rank == 0 && step == 6;
    if (loss_first) Reduce(losses, loss);
    Reduce(world.comm, gradient);
    if (!loss_first) Reduce(losses, loss);
  }
  CHECK(ncclCommDestroy(losses));
  return 0;
}
