// Training as NCCL programs do it: buffers on the device, kernels and collectives on streams, two
// communicators, groups, in place and not. The next kernel overwrites every buffer without waiting
// for anything. What the steps consumed and computed is one line.
//
//   --unseeded             each step's seed is from random(4)
//   --steps=N --count=N    how many, and of how many floats
//   --legacy               everything on the legacy default stream
//   --per-thread           everything on the thread's own default stream
//   --say-steps            a line when a step is done, which waits for the device
//   --late-inputs          kernels in a group change what its send reads, after the call
//   --capture              the last step's all-reduce is captured into a graph, and launched twice
//   --fault=N              one element of the input of step N is changed (on rank 1)
//   --end=crash            a bad access after the last step, without waiting for the streams
//   --end=unreceived       rank 0 sends to rank 1, which never receives, and waits for its stream
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::Device;
using cuda_app::ForNccl;
using cuda_app::Has;

int main(int argc, char** argv) {
  const int steps = job_number(argc, argv, "--steps", 5);
  const auto count = static_cast<size_t>(job_number(argc, argv, "--count", 3000));
  const int fault = job_number(argc, argv, "--fault", 0);
  const bool unseeded = Has(argc, argv, "--unseeded");
  const auto ranks = static_cast<size_t>(job_size());
  const Device device;
  CUstream stream = nullptr;
  CUstream second = nullptr;
  CUevent ready = nullptr;
  if (Has(argc, argv, "--per-thread")) {
    stream = CU_STREAM_PER_THREAD;
    second = CU_STREAM_PER_THREAD;
  } else if (!Has(argc, argv, "--legacy")) {
    CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUDA_CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  }
  CUDA_CHECK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
  ncclComm_t comm = job_communicator();
  ncclComm_t other = nullptr;
  JOB_CHECK(ncclCommSplit(comm, 0, job_rank(), &other, nullptr));

  CUdeviceptr total = Device::Floats(count);
  CUdeviceptr data = Device::Floats(count);
  CUdeviceptr sum = Device::Floats(count);
  CUdeviceptr all = Device::Floats(count * ranks);
  CUdeviceptr came = Device::Floats(count);
  device.Fill(total, count, 0, stream);
  unsigned seeds = 0;
  auto reduce = [&] {
    JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(sum), count, ncclFloat32, ncclSum, comm,
                            ForNccl(stream)));
  };
  for (int step = 1; step <= steps; ++step) {
    unsigned seed = static_cast<unsigned>(step * 100 + job_rank());
    if (unseeded && getrandom(&seed, sizeof seed, 0) != sizeof seed) return 98;
    seeds = seeds * 31 + seed;
    if (step == fault && job_rank() == 1) ++seed;
    device.Fill(data, count, seed, stream);
    reduce();
    device.Fill(data, count, seed + 1, stream);  // nothing has waited for the input to be read
    device.Add(total, sum, count, stream);
    device.Fill(sum, count, 1, stream);  // nor for the result
    // In place, on another communicator and stream.
    CUDA_CHECK(cuEventRecord(ready, stream));
    CUDA_CHECK(cuStreamWaitEvent(second, ready, 0));
    JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(data), count, ncclFloat32, ncclMax, other,
                            ForNccl(second)));
    device.Add(total, data, count, second);
    CUDA_CHECK(cuEventRecord(ready, second));
    CUDA_CHECK(cuStreamWaitEvent(stream, ready, 0));
    // A group: a ring of sends, and a collective behind it.
    const int next = (job_rank() + 1) % job_size();
    const int previous = (job_rank() + job_size() - 1) % job_size();
    JOB_CHECK(ncclGroupStart());
    JOB_CHECK(ncclSend(Buffer(data), count, ncclFloat32, next, comm, ForNccl(stream)));
    if (Has(argc, argv, "--late-inputs")) device.Fill(data, count, seed + 7, stream);
    JOB_CHECK(ncclRecv(Buffer(came), count, ncclFloat32, previous, comm, ForNccl(stream)));
    JOB_CHECK(
        ncclAllGather(Buffer(total), Buffer(all), count, ncclFloat32, other, ForNccl(stream)));
    JOB_CHECK(ncclGroupEnd());
    device.Add(total, came, count, stream);
    device.Add(total, all + count * sizeof(float) * (ranks - 1), count, stream);
    device.Fill(all, count * ranks, 2, stream);
    device.Fill(came, count, 3, stream);
    JOB_CHECK(ncclBcast(Buffer(total), count / 2, ncclFloat32, 0, comm, ForNccl(stream)));
    if (Has(argc, argv, "--say-steps")) {
      CUDA_CHECK(cuStreamSynchronize(stream));
      printf("rank %d step %d\n", job_rank(), step);
      fflush(stdout);
    }
  }
  if (Has(argc, argv, "--capture")) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUDA_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    reduce();
    device.Add(total, sum, count, stream);
    CUDA_CHECK(cuStreamEndCapture(stream, &graph));
    CUDA_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 2; ++i) CUDA_CHECK(cuGraphLaunch(exec, stream));
  }
  const char* end = job_option(argc, argv, "--end");
  if (end != nullptr && strcmp(end, "unreceived") == 0) {
    if (job_rank() == 1) pause();
    JOB_CHECK(ncclSend(Buffer(total), count, ncclFloat32, 1, comm, ForNccl(stream)));
    CUDA_CHECK(cuStreamSynchronize(stream));
    printf("rank %d: the send is done\n", job_rank());
    fflush(stdout);
  } else if (end != nullptr && job_rank() == 1) {
    *reinterpret_cast<volatile int*>(Buffer(total)) = 1;  // the processor has no business there
  }
  const uint64_t hash = cuda_app::HashOf(total, count, stream);
  JOB_CHECK(ncclCommDestroy(other));
  JOB_CHECK(ncclCommDestroy(comm));
  printf("rank %d of %d: seeds %08x, result %016llx\n", job_rank(), job_size(), seeds,
         static_cast<unsigned long long>(hash));
  return 0;
}
