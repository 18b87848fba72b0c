// cuRAND's generators on the device: two, on streams of their own, and every buffer overwritten by
// the next call without waiting for anything. The result of the streams is one line.
//
//   --steps=N --count=N    how many, and of how many floats
//   --seed=N               of the ranks' random numbers; without it from getrandom
//   --legacy               on the legacy default stream
//   --graph                a step is a graph, captured once and launched N times
//   --reduce               what a step drew is summed over the ranks
//   --fault                the seed is another one than without the option
#include <sys/random.h>

#include <cstdint>

#include "include/compat/curand.h"
#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::Device;
using cuda_app::ForNccl;
using cuda_app::Has;

#define CURAND_CHECK(call)                                                             \
  do {                                                                                 \
    curandStatus_t curand_result_ = (call);                                            \
    if (curand_result_ != CURAND_STATUS_SUCCESS) {                                     \
      fprintf(stderr, "rank %d: %s returned %d\n", job_rank(), #call, curand_result_); \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)

int main(int argc, char** argv) {
  const int steps = job_number(argc, argv, "--steps", 5);
  const auto count = static_cast<size_t>(job_number(argc, argv, "--count", 30000));
  const Device device;
  CUstream stream = nullptr;
  CUstream second = nullptr;
  CUevent ready = nullptr;
  if (!Has(argc, argv, "--legacy")) {
    CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUDA_CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  }
  CUDA_CHECK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
  ncclComm_t comm = Has(argc, argv, "--reduce") ? job_communicator() : nullptr;
  auto seed = static_cast<unsigned>(job_number(argc, argv, "--seed", 0));
  if (seed == 0 && getrandom(&seed, sizeof seed, 0) != sizeof seed) return 98;
  curandGenerator_t pseudo = nullptr;
  curandGenerator_t quasi = nullptr;
  CURAND_CHECK(curandCreateGenerator(&pseudo, CURAND_RNG_PSEUDO_PHILOX4_32_10));
  CURAND_CHECK(curandCreateGenerator(&quasi, CURAND_RNG_QUASI_SOBOL32));
  const uint64_t fault = Has(argc, argv, "--fault") ? 1 : 0;
  CURAND_CHECK(curandSetPseudoRandomGeneratorSeed(pseudo, 7 + fault));
  CURAND_CHECK(curandSetGeneratorOffset(pseudo, seed));
  CURAND_CHECK(curandSetGeneratorOrdering(pseudo, CURAND_ORDERING_PSEUDO_BEST));
  CURAND_CHECK(curandSetQuasiRandomGeneratorDimensions(quasi, 2));
  CURAND_CHECK(curandSetStream(pseudo, ForNccl(stream)));
  CURAND_CHECK(curandSetStream(quasi, ForNccl(second)));
  CURAND_CHECK(curandGenerateSeeds(pseudo));

  CUdeviceptr total = Device::Floats(count);
  CUdeviceptr data = Device::Floats(count);
  CUdeviceptr points = Device::Floats(count);
  device.Fill(total, count, 0, stream);
  auto step = [&] {
    auto* numbers = static_cast<float*>(Buffer(data));
    if (comm != nullptr) JOB_CHECK(ncclGroupStart());  // which is nothing to a generator
    CURAND_CHECK(curandGenerateUniform(pseudo, numbers, count));
    device.Add(total, data, count, stream);
    CURAND_CHECK(curandGenerateNormal(pseudo, numbers, count, 0.5f, 2));
    if (comm != nullptr) JOB_CHECK(ncclGroupEnd());
    CUDA_CHECK(cuEventRecord(ready, stream));
    CUDA_CHECK(cuStreamWaitEvent(second, ready, 0));
    CURAND_CHECK(curandGenerateUniform(quasi, static_cast<float*>(Buffer(points)), count));
    device.Add(data, points, count, second);
    CUDA_CHECK(cuEventRecord(ready, second));
    CUDA_CHECK(cuStreamWaitEvent(stream, ready, 0));
    if (comm != nullptr)
      JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(data), count, ncclFloat32, ncclSum, comm,
                              ForNccl(stream)));
    device.Mix(total, data, count, stream);
    device.Fill(data, count, 1, stream);  // nothing has waited for what was drawn to be read
  };
  if (Has(argc, argv, "--graph")) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUDA_CHECK(cuStreamSynchronize(stream));
    CUDA_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    step();
    CUDA_CHECK(cuStreamEndCapture(stream, &graph));
    CUDA_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < steps; ++i) CUDA_CHECK(cuGraphLaunch(exec, stream));
  } else {
    for (int i = 0; i < steps; ++i) step();
  }
  const uint64_t hash = cuda_app::HashOf(total, count, stream);
  CURAND_CHECK(curandDestroyGenerator(quasi));
  CURAND_CHECK(curandDestroyGenerator(pseudo));
  if (comm != nullptr) JOB_CHECK(ncclCommDestroy(comm));
  printf("rank %d of %d: seed %08x, result %016llx\n", job_rank(), job_size(), seed,
         static_cast<unsigned long long>(hash));
  return 0;
}
