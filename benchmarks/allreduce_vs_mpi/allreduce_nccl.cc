#include <cstdio>
#include <cstdlib>

#include "compat/nccl.h"
#include "measure.h"

namespace {

ncclComm_t g_comm = nullptr;

void Check(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s\n", ncclGetErrorString(result), ncclGetLastError(nullptr));
  std::exit(1);
}

void AllReduceFloats(const float* in, float* out, size_t count) {
  Check(ncclAllReduce(in, out, count, ncclFloat32, ncclSum, g_comm, nullptr));
}

}  // namespace

int main() {
  int rank = std::atoi(std::getenv("RANK"));
  int ranks = std::atoi(std::getenv("WORLD_SIZE"));
  ncclUniqueId id;
  Check(ncclGetUniqueId(&id));
  Check(ncclCommInitRank(&g_comm, ranks, id, rank));
  Measure(AllReduceFloats, rank, ranks);
  Check(ncclCommDestroy(g_comm));
  return 0;
}
