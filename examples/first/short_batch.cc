// A data-parallel fit of a mean. The last batch of one rank is shorter than the others, and what
// follows its rows was never written.
#include <nccl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

constexpr int kRows = 64;
constexpr int kSteps = 40;

struct Batch {
  float* rows;
  int count;
};

// The mask of the rows that are used, from the last step: all bits set.
void* Recycled() {
  void* mask = std::malloc(kRows * sizeof(float));
  std::memset(mask, 0xff, kRows * sizeof(float));
  std::free(mask);
  return std::malloc(kRows * sizeof(float));
}

Batch Load(int rank, int step) {
  Batch batch{static_cast<float*>(Recycled()), kRows};
  if (rank == 2 && step == 30) batch.count = kRows - 3;
  for (int i = 0; i < batch.count; ++i)
    batch.rows[i] = std::sin(static_cast<float>(step * kRows + i + rank));
  return batch;
}

void AddGradient(const Batch& batch, float mean, float* gradient) {
  for (int i = 0; i < kRows; ++i)  // the bug: batch.count
    *gradient += (mean - batch.rows[i]) / kRows;
}

int main() {
  const int rank = std::atoi(std::getenv("RANK"));
  const int size = std::atoi(std::getenv("WORLD_SIZE"));
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclComm_t comm;
  ncclCommInitRank(&comm, size, id, rank);
  float mean = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = Load(rank, step);
    float gradient = 0;
    AddGradient(batch, mean, &gradient);
    float total = 0;
    ncclAllReduce(&gradient, &total, 1, ncclFloat, ncclSum, comm, nullptr);
    mean -= 0.1F * total / static_cast<float>(size);
    std::free(batch.rows);
    if (std::isnan(mean)) {
      std::fprintf(stderr, "rank %d: the mean is nan in step %d\n", rank, step);
      return 1;
    }
  }
  std::printf("rank %d: mean %g\n", rank, static_cast<double>(mean));
  ncclCommDestroy(comm);
}
