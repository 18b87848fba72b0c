// Neighbours exchange their borders: both send first. Small ones are buffered on the way, large
// ones wait for the other side's receive.
#include <vector>

#include "zoo.h"

namespace {

void Exchange(const World& world, std::vector<float>& mine, std::vector<float>& theirs,
              bool fixed) {
  const int peer = world.rank ^ 1;
  if (fixed) CHECK(ncclGroupStart());
  CHECK(ncclSend(mine.data(), mine.size(), ncclFloat, peer, world.comm, nullptr));  // PLACE
  CHECK(ncclRecv(theirs.data(), theirs.size(), ncclFloat, peer, world.comm, nullptr));
  if (fixed) CHECK(ncclGroupEnd());
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  const bool fixed = IsFixed(argc, argv);
  for (const size_t size : {64, 64, 16 << 20}) {
    std::vector<float> mine(size, static_cast<float>(world.rank));
    std::vector<float> theirs(size);
    Exchange(world, mine, theirs, fixed);
  }
  return 0;
}
