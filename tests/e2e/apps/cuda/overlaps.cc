// Launches of one graph that nothing orders but NCCL. It runs the operations of a communicator one
// after the other, in the order of the launches. The graph sums in place, which
// doubles the values of two ranks, and brings them to another buffer. So each launch has values of
// its own.
//
//   --launches=N    (60)
//   --one-exec      the same executable graph on two streams; else it is instantiated twice
#include <cstdint>

#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::Device;
using cuda_app::ForNccl;

int main(int argc, char** argv) {
  constexpr size_t kCount = 500000;  // copies of it take a while
  const int launches = job_number(argc, argv, "--launches", 60);
  const Device device;
  CUstream streams[2] = {};
  for (CUstream& stream : streams) CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ncclComm_t comm = job_communicator();
  CUdeviceptr data = Device::Floats(kCount);
  CUdeviceptr out = Device::Floats(kCount);
  device.Fill(data, kCount, static_cast<uint64_t>(job_rank()) + 5, streams[0]);
  CUDA_CHECK(cuStreamSynchronize(streams[0]));

  CUgraph graph = nullptr;
  CUDA_CHECK(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
  JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(data), kCount, ncclFloat32, ncclSum, comm,
                          ForNccl(streams[0])));
  JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(out), kCount, ncclFloat32, ncclMax, comm,
                          ForNccl(streams[0])));
  CUDA_CHECK(cuStreamEndCapture(streams[0], &graph));
  CUgraphExec execs[2] = {};
  for (CUgraphExec& exec : execs) CUDA_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  if (cuda_app::Has(argc, argv, "--one-exec")) execs[1] = execs[0];

  for (int launch = 0; launch < launches; ++launch)
    CUDA_CHECK(cuGraphLaunch(execs[launch % 2], streams[launch % 2]));
  for (CUstream stream : streams) CUDA_CHECK(cuStreamSynchronize(stream));
  const uint64_t hash =
      cuda_app::HashOf(data, kCount, streams[0]) ^ (cuda_app::HashOf(out, kCount, streams[0]) << 1);
  JOB_CHECK(ncclCommDestroy(comm));
  printf("rank %d of %d: result %016llx\n", job_rank(), job_size(),
         static_cast<unsigned long long>(hash));
  return 0;
}
