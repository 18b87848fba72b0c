// A label outside of its table: one rank aborts, the others lose their peer.
#include <vector>

#include "zoo.h"

namespace {

float Target(const std::vector<float>& table, size_t label) {
  if (label >= table.size()) std::abort();  // PLACE
  return table[label];
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  const std::vector<float> table(10, 1.0f);
  for (int step = 0; step < 12; ++step) {
    const size_t label =
        !fixed && world.rank == 2 && step == 7 ? 10 : static_cast<size_t>(step % 10);
    std::vector<float> gradient(128, Target(table, label));
    CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                        world.comm, nullptr));
  }
  return 0;
}
