// One rank with several communicators, groups, point-to-point calls, threads and a split:
// everything that the recorder keeps apart. Prints sums that do not depend on timing.
#include <thread>
#include <vector>

#include "include/deja.h"
#include "tests/e2e/apps/record/job.h"

namespace {

double Sum(const std::vector<float>& values) {
  double total = 0;
  for (float value : values) total += value;
  return total;
}

}  // namespace

int main() {
  int rank = job_rank();
  int size = job_size();
  ncclComm_t world = job_communicator();
  ncclComm_t half = nullptr;
  JOB_CHECK(ncclCommSplit(world, rank % 2, rank, &half, nullptr));
  int half_rank = -1;
  JOB_CHECK(ncclCommUserRank(half, &half_rank));

  std::vector<float> in(300, static_cast<float>(rank + 1));
  std::vector<float> out(300);
  std::vector<float> all(300 * static_cast<size_t>(size));
  for (int step = 0; step < 5; ++step) {
    deja_step(static_cast<uint64_t>(step));
    JOB_CHECK(ncclGroupStart());
    JOB_CHECK(ncclAllReduce(in.data(), out.data(), 300, ncclFloat32, ncclSum, world, nullptr));
    JOB_CHECK(ncclAllGather(in.data(), all.data(), 300, ncclFloat32, world, nullptr));
    JOB_CHECK(ncclGroupEnd());
    for (size_t i = 0; i < in.size(); ++i) in[i] += out[i] / 100 + all[i] / 7;
    JOB_CHECK(ncclAllReduce(in.data(), in.data(), 300, ncclFloat32, ncclMax, half, nullptr));

    std::vector<float> received(10);
    JOB_CHECK(ncclGroupStart());
    JOB_CHECK(ncclSend(in.data(), 10, ncclFloat32, (rank + 1) % size, world, nullptr));
    JOB_CHECK(ncclRecv(received.data(), 10, ncclFloat32, (rank + size - 1) % size, world, nullptr));
    JOB_CHECK(ncclGroupEnd());
    in[0] += received[9] / 3;
    int64_t shape[] = {30, 10};
    deja_tensor("in", in.data(), shape, 2, DEJA_FLOAT32);
  }
  std::thread other([&] {
    deja_note("on another thread");
    JOB_CHECK(ncclBroadcast(in.data(), in.data(), 300, ncclFloat32, 0, world, nullptr));
  });
  other.join();
  printf("rank %d: %.3f, rank %d of its half\n", rank, Sum(in), half_rank);
  JOB_CHECK(ncclCommDestroy(half));
  JOB_CHECK(ncclCommDestroy(world));
  return 0;
}
