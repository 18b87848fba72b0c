// Which device a rank has: the one of its number, found in each of the ways in which programs come
// to the driver's functions. One all-reduce, for a job to be.
#include <dlfcn.h>

#include <cstdint>

#include "tests/e2e/apps/cuda/device.h"

namespace {

using Get = CUresult (*)(CUdevice*, int);
using Count = CUresult (*)(int*);
using GetProcAddress = CUresult (*)(const char*, void**, int, unsigned long long, int*);

CUdevice Ask(const char* how, Get get, Count count) {
  int devices = 0;
  CUdevice device = -1;
  CUDA_CHECK(count(&devices));
  CUDA_CHECK(get(&device, job_rank()));
  printf("rank %d %s: device %d, %d in all\n", job_rank(), how, device, devices);
  return device;
}

template <typename Function>
Function Address(GetProcAddress get_address, const char* name) {
  void* function = nullptr;
  CUDA_CHECK(get_address(name, &function, 12000, 0, nullptr));
  return reinterpret_cast<Function>(function);
}

}  // namespace

int main() {
  CUDA_CHECK(cuInit(0));
  const CUdevice device = Ask("linked", cuDeviceGet, cuDeviceGetCount);
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (library == nullptr) return 98;
  Ask("by dlsym", reinterpret_cast<Get>(dlsym(library, "cuDeviceGet")),
      reinterpret_cast<Count>(dlsym(library, "cuDeviceGetCount")));
  const auto get_address = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  Ask("by address", Address<Get>(get_address, "cuDeviceGet"),
      Address<Count>(get_address, "cuDeviceGetCount"));
  CUcontext context = nullptr;
  CUDA_CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CUDA_CHECK(cuCtxSetCurrent(context));
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  uint64_t value = 1 + static_cast<uint64_t>(job_rank());
  JOB_CHECK(ncclGetUniqueId(&id));
  JOB_CHECK(ncclCommInitRank(&comm, job_size(), id, job_rank()));
  CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA_CHECK(cuMemAlloc_v2(&memory, sizeof value));
  CUDA_CHECK(cuMemcpyAsync(memory, reinterpret_cast<uintptr_t>(&value), sizeof value, stream));
  void* buffer = cuda_app::Buffer(memory);
  JOB_CHECK(ncclAllReduce(buffer, buffer, 1, ncclUint64, ncclSum, comm, cuda_app::ForNccl(stream)));
  CUDA_CHECK(cuMemcpyAsync(reinterpret_cast<uintptr_t>(&value), memory, sizeof value, stream));
  CUDA_CHECK(cuStreamSynchronize(stream));
  JOB_CHECK(ncclCommDestroy(comm));
  printf("rank %d sum %llu\n", job_rank(), static_cast<unsigned long long>(value));
  return 0;
}
