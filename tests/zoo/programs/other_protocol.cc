// NCCL_PROTO is set on one machine only: all ranks enter the collective and none comes out of it.
// The ranks of that machine are started by a wrapper, as a job script does.
#include <unistd.h>

#include <string>
#include <vector>

#include "zoo.h"

namespace {

// What the job script of the second machine does.
void StartAsOn(const char* machine, char** argv) {
  if (std::getenv("MACHINE") != nullptr) return;
  setenv("MACHINE", machine, 1);
  if (std::string(machine) == "b") setenv("NCCL_PROTO", "Simple", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  const bool fixed = IsFixed(argc, argv);
  StartAsOn(std::atoi(std::getenv("RANK")) >= 2 && !fixed ? "b" : "a", argv);
  World world;
  for (int step = 0; step < 8; ++step) {
    std::vector<float> gradient(4096, 1.0f);
    CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                        world.comm, nullptr));  // PLACE
  }
  return 0;
}
