// Training whose state is in device memory and is shown to Deja: a tensor after each step, and the
// same as part of checkpoints. The result is one line.
//
//   --unseeded         each step's seed is from random(4)
//   --steps=N          how many (6)
//   --count=N          floats of a tensor (3000)
//   --fault=N          after the all-reduce of step N the total gets another number (on rank 1)
#include <sys/random.h>

#include <cstdint>

#include "include/deja.h"
#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::Device;
using cuda_app::ForNccl;
using cuda_app::Has;

int main(int argc, char** argv) {
  const int steps = job_number(argc, argv, "--steps", 6);
  const auto count = static_cast<size_t>(job_number(argc, argv, "--count", 3000));
  const int fault = job_number(argc, argv, "--fault", 0);
  const bool unseeded = Has(argc, argv, "--unseeded");
  const Device device;
  CUstream stream = nullptr;
  CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  ncclComm_t comm = job_communicator();
  CUdeviceptr data = Device::Floats(count);
  CUdeviceptr total = Device::Floats(count);
  device.Fill(total, count, 0, stream);
  const int64_t shape[] = {static_cast<int64_t>(count)};
  deja_register_tensor("total", Buffer(total), shape, 1, DEJA_FLOAT32);
  for (uint64_t step = 0; step < static_cast<uint64_t>(steps); ++step) {
    step = deja_step(step);
    unsigned seed = static_cast<unsigned>(step * 100 + static_cast<uint64_t>(job_rank()));
    if (unseeded && getrandom(&seed, sizeof seed, 0) != sizeof seed) return 98;
    device.Fill(data, count, seed, stream);
    JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(data), count, ncclFloat32, ncclSum, comm,
                            ForNccl(stream)));
    device.Mix(total, data, count, stream);
    if (step + 1 == static_cast<uint64_t>(fault) && job_rank() == 1)
      device.Fill(total, count, 5, stream);
    deja_tensor("total", Buffer(total), shape, 1, DEJA_FLOAT32);
    device.Fill(data, count, 1, stream);
  }
  const uint64_t hash = cuda_app::HashOf(total, count, stream);
  JOB_CHECK(ncclCommDestroy(comm));
  printf("rank %d of %d: result %016llx\n", job_rank(), job_size(),
         static_cast<unsigned long long>(hash));
  return 0;
}
