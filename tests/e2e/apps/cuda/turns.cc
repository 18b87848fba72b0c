// A rank that needs much of a device. It gets memory in all the ways that Deja looks at, keeps most
// of it, and gives some back at every step. Contents are checked by what it computes with them.
//
//   --unseeded           each step's seed is from random(4)
//   --steps=N --count=N  how many, and of how many floats each of the six buffers is
//   --more=N             rank 0 asks for so many floats besides
//   --patient            what is refused for want of memory is asked for again, until there is some
//   --threads            a second thread computes on the device while the first one waits
#include <dlfcn.h>
#include <sys/random.h>

#include <cstdint>
#include <thread>

#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::Device;
using cuda_app::ForNccl;
using cuda_app::Has;

namespace {

using Alloc = CUresult (*)(CUdeviceptr*, size_t);
using GetProcAddress = decltype(&cuGetProcAddress_v2);

// The driver's allocator as the CUDA runtime finds it, and as programs do that load the driver.
Alloc ByAddress(void* driver) {
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(driver, "cuGetProcAddress_v2"));
  if (get == nullptr) return cuMemAlloc_v2;  // before CUDA 12
  void* function = nullptr;
  CUDA_CHECK(get("cuMemAlloc", &function, 12000, 0, nullptr));
  return reinterpret_cast<Alloc>(function);
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = job_number(argc, argv, "--steps", 4);
  const auto count = static_cast<size_t>(job_number(argc, argv, "--count", 20000));
  const auto more = static_cast<size_t>(job_number(argc, argv, "--more", 0));
  const size_t bytes = count * sizeof(float);
  const Device device;
  CUstream stream = nullptr;
  CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ncclComm_t comm = job_communicator();
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver == nullptr) return 98;

  CUdeviceptr sum = 0;
  CUdeviceptr data = 0;
  CUdeviceptr kept = 0;
  CUmemGenericAllocationHandle unused = 0;
  CUDA_CHECK(cuMemAlloc_v2(&sum, bytes));
  CUDA_CHECK(reinterpret_cast<Alloc>(dlsym(driver, "cuMemAlloc_v2"))(&data, bytes));
  CUDA_CHECK(ByAddress(driver)(&kept, bytes));
  // A real driver wants to know more, and has its own unit of size.
  if (cuda_app::IsSimulated()) CUDA_CHECK(cuMemCreate(&unused, bytes, nullptr, 0));
  void* of_nccl = nullptr;
  JOB_CHECK(ncclMemAlloc(&of_nccl, bytes));
  if (more != 0 && job_rank() == 0) {
    CUdeviceptr extra = 0;
    CUresult got = cuMemAlloc_v2(&extra, more * sizeof(float));
    for (int i = 0; got != CUDA_SUCCESS && Has(argc, argv, "--patient") && i < 3; ++i)
      got = cuMemAlloc_v2(&extra, more * sizeof(float));
    if (got != CUDA_SUCCESS && !Has(argc, argv, "--patient")) CUDA_CHECK(got);
    printf("rank 0 got %d\n", got);
  }
  device.Fill(kept, count, static_cast<uint64_t>(job_rank()), stream);
  device.Fill(sum, count, 0, stream);
  unsigned seeds = 0;
  uint64_t seen_by_thread = 0;
  for (int step = 1; step <= steps; ++step) {
    unsigned seed = static_cast<unsigned>(step * 100 + job_rank());
    if (Has(argc, argv, "--unseeded") && getrandom(&seed, sizeof seed, 0) != sizeof seed) return 98;
    seeds = seeds * 31 + seed;
    CUdeviceptr scratch = 0;
    CUDA_CHECK(cuMemAllocAsync(&scratch, bytes, stream));
    device.Fill(scratch, count, seed, stream);
    device.Mix(kept, scratch, count, stream);
    device.Fill(data, count, seed + 1, stream);
    device.Add(data, kept, count, stream);
    CUDA_CHECK(cuMemFreeAsync(scratch, stream));
    JOB_CHECK(
        ncclAllReduce(Buffer(data), of_nccl, count, ncclFloat32, ncclSum, comm, ForNccl(stream)));
    std::thread other;
    if (Has(argc, argv, "--threads"))
      other = std::thread([&] {
        cuda_app::MakeContext();
        CUstream own = nullptr;
        CUDA_CHECK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
        CUdeviceptr its = 0;
        CUDA_CHECK(cuMemAlloc_v2(&its, bytes));
        device.Fill(its, count, seed, own);
        seen_by_thread = seen_by_thread * 31 + cuda_app::HashOf(its, count, own);
        CUDA_CHECK(cuMemFree_v2(its));
      });
    device.Add(sum, reinterpret_cast<uintptr_t>(of_nccl), count, stream);
    JOB_CHECK(ncclAllReduce(Buffer(sum), Buffer(sum), count, ncclFloat32, ncclMax, comm,
                            ForNccl(stream)));
    if (other.joinable()) other.join();
    device.Add(kept, sum, count, stream);
    CUDA_CHECK(cuStreamSynchronize(stream));
  }
  const uint64_t hash = cuda_app::HashOf(kept, count, stream) ^ seen_by_thread;
  if (cuda_app::IsSimulated()) CUDA_CHECK(cuMemRelease(unused));
  JOB_CHECK(ncclMemFree(of_nccl));
  JOB_CHECK(ncclCommDestroy(comm));
  printf("rank %d of %d: seeds %08x, result %016llx\n", job_rank(), job_size(), seeds,
         static_cast<unsigned long long>(hash));
  return 0;
}
