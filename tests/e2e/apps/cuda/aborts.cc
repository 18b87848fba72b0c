// Training that loses a communicator: rank 1 never enters an all-reduce. A watchdog on another
// thread sees that rank 0's stream does not go on, and aborts. Another communicator goes on. What
// was computed and how it ended is one line.
//
//   --unseeded           seeds are from random(4)
//   --by=main            the thread that issued the operations aborts; watchdog otherwise
//   --by=nobody          the stream is waited for until a signal ends the process
//   --how=revoke|shrink  and not ncclCommAbort
//   --how=exit           the process ends instead
//   --peer=gone          rank 1 ends by _exit, and the error of the communicator says so
//   --graph              the all-reduces are launches of a CUDA graph that has one
//   --done               nothing is under way: the communicator is aborted after its stream is done
#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::Device;
using cuda_app::ForNccl;
using cuda_app::Has;

namespace {

struct Lost {
  ncclComm_t comm;
  CUevent behind;  // what never comes
  const char* how;
  bool peer_gone;
  int looks = 0;
  ncclResult_t error = ncclSuccess;
  bool ready = false;  // it came nevertheless
};

// Waits for a while, or for the error, and cuts short what is under way.
void GiveUp(Lost& lost) {
  constexpr int kLooks = 40;
  while (!lost.ready && lost.looks < kLooks && lost.error == ncclSuccess) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    lost.ready = cuEventQuery(lost.behind) != CUDA_ERROR_NOT_READY;
    JOB_CHECK(ncclCommGetAsyncError(lost.comm, &lost.error));
    if (!lost.peer_gone) ++lost.looks;
  }
  if (lost.how == nullptr) {
    JOB_CHECK(ncclCommAbort(lost.comm));
    return;
  }
  if (strcmp(lost.how, "exit") == 0) {
    printf("rank %d of %d: ends, looks %d%s\n", job_rank(), job_size(), lost.looks,
           lost.ready ? ", came nevertheless" : "");
    fflush(stdout);
    _exit(4);
  }
  if (strcmp(lost.how, "shrink") == 0) {
    int excluded = 1;
    ncclComm_t smaller = nullptr;
    JOB_CHECK(ncclCommShrink(lost.comm, &excluded, 1, &smaller, nullptr, NCCL_SHRINK_ABORT));
    JOB_CHECK(ncclCommDestroy(smaller));
  } else {
    JOB_CHECK(ncclCommRevoke(lost.comm, NCCL_REVOKE_DEFAULT));
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr size_t kCount = 2000;
  const Device device;
  unsigned seed = 7u + static_cast<unsigned>(job_rank());
  if (Has(argc, argv, "--unseeded") && getrandom(&seed, sizeof seed, 0) != sizeof seed) return 98;
  CUstream stream = nullptr;
  CUstream second = nullptr;
  CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA_CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  ncclComm_t comm = job_communicator();
  ncclComm_t other = nullptr;
  JOB_CHECK(ncclCommSplit(comm, 0, job_rank(), &other, nullptr));
  CUdeviceptr data = Device::Floats(kCount);
  CUdeviceptr sum = Device::Floats(kCount);
  CUdeviceptr total = Device::Floats(kCount);
  auto reduce = [&](CUdeviceptr from, CUdeviceptr to, ncclComm_t on, CUstream where) {
    JOB_CHECK(
        ncclAllReduce(Buffer(from), Buffer(to), kCount, ncclFloat32, ncclSum, on, ForNccl(where)));
  };
  device.Fill(total, kCount, 0, stream);
  CUgraphExec graph = nullptr;
  if (Has(argc, argv, "--graph")) {
    CUgraph captured = nullptr;
    CUDA_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    reduce(data, sum, comm, stream);
    CUDA_CHECK(cuStreamEndCapture(stream, &captured));
    CUDA_CHECK(cuGraphInstantiateWithFlags(&graph, captured, 0));
  }
  auto reduce_data = [&] {
    if (graph == nullptr) return reduce(data, sum, comm, stream);
    CUDA_CHECK(cuGraphLaunch(graph, stream));
  };
  for (unsigned step = 0; step < 3; ++step) {
    device.Fill(data, kCount, seed + step, stream);
    reduce_data();
    device.Add(total, sum, kCount, stream);
    CUDA_CHECK(cuStreamSynchronize(stream));
  }
  Lost lost{comm, nullptr, job_option(argc, argv, "--how"),
            job_option(argc, argv, "--peer") != nullptr};
  if (job_rank() == 0) {
    CUDA_CHECK(cuEventCreate(&lost.behind, CU_EVENT_DISABLE_TIMING));
    if (!Has(argc, argv, "--done")) {
      device.Fill(data, kCount, seed + 3, stream);
      reduce_data();
      if (graph == nullptr)
        reduce(sum, sum, comm, stream);
      else
        reduce_data();
      CUDA_CHECK(cuEventRecord(lost.behind, stream));
    } else {
      lost.looks = 40;
    }
    const char* by = job_option(argc, argv, "--by");
    std::thread watchdog;
    if (by != nullptr && strcmp(by, "nobody") == 0) {
      alarm(1);
      CUDA_CHECK(cuStreamSynchronize(stream));
      printf("the stream went on\n");
      return 0;
    }
    if (by != nullptr) {
      GiveUp(lost);
    } else {
      watchdog = std::thread([&] {
        cuda_app::MakeContext();
        GiveUp(lost);
      });
    }
    CUDA_CHECK(cuStreamSynchronize(stream));
    if (watchdog.joinable()) watchdog.join();
    // What the aborted operations have left there is undefined.
    device.Fill(sum, kCount, seed, stream);
    device.Add(total, sum, kCount, stream);
    CUDA_CHECK(cuStreamSynchronize(stream));
  } else if (lost.peer_gone) {
    _exit(3);
  }
  if (!lost.peer_gone) {
    reduce(total, total, other, second);
    CUDA_CHECK(cuStreamSynchronize(second));
    if (job_rank() != 0 || lost.how != nullptr) JOB_CHECK(ncclCommAbort(comm));
    JOB_CHECK(ncclCommDestroy(other));
  } else {
    JOB_CHECK(ncclCommAbort(other));
  }
  const uint64_t hash = cuda_app::HashOf(total, kCount, second);
  CUDA_CHECK(cuMemFree_v2(data));
  CUDA_CHECK(cuMemFree_v2(sum));
  printf("rank %d of %d: seed %08x, result %016llx, error %d, looks %d%s\n", job_rank(), job_size(),
         seed, static_cast<unsigned long long>(hash), lost.error, lost.looks,
         lost.ready ? ", came nevertheless" : "");
  return 0;
}
