// Which device a rank has: the one of its number, found in each of the ways in which programs come
// to the driver's functions. One all-reduce, for a job to be.
//
//   --missing    asks for functions that are not there, too, and prints what it was told
#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "tests/e2e/apps/cuda/device.h"
#include "tests/fakes/cuda/runtime/cudart_sim.h"

namespace {

using Get = decltype(&cuDeviceGet);
using Count = decltype(&cuDeviceGetCount);

CUdevice Ask(const std::string& how, Get get, Count count) {
  int devices = 0;
  CUdevice device = -1;
  CUDA_CHECK(count(&devices));
  CUDA_CHECK(get(&device, job_rank()));
  printf("rank %d %s: device %d, %d in all\n", job_rank(), how.c_str(), device, devices);
  return device;
}

template <typename Look>
void AskBy(const std::string& how, const Look& look) {
  Ask(how, reinterpret_cast<Get>(look("cuDeviceGet")),
      reinterpret_cast<Count>(look("cuDeviceGetCount")));
}

void* ByAddress(decltype(&cuGetProcAddress) get, const char* name, int version) {
  void* function = nullptr;
  CUDA_CHECK(get(name, &function, version, 0));
  return function;
}

void* ByAddress2(decltype(&cuGetProcAddress_v2) get, const char* name, int version) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  CUDA_CHECK(get(name, &function, version, 0, &status));
  return status == CU_GET_PROC_ADDRESS_SUCCESS ? function : nullptr;
}

// Also by what cuGetProcAddress itself is found with, which is another function since CUDA 12.
void AskByAddress(void* library) {
  const auto first =
      reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(library, "cuGetProcAddress"));
  AskBy("by address", [=](const char* name) { return ByAddress(first, name, 11080); });
  const auto again =
      reinterpret_cast<decltype(&cuGetProcAddress)>(ByAddress(first, "cuGetProcAddress", 11080));
  AskBy("by address of address", [=](const char* name) { return ByAddress(again, name, 11080); });
  const auto second =
      reinterpret_cast<decltype(&cuGetProcAddress_v2)>(dlsym(library, "cuGetProcAddress_v2"));
  if (second == nullptr) return;  // before CUDA 12
  AskBy("by address 2", [=](const char* name) { return ByAddress2(second, name, 12000); });
  const auto second_again =
      reinterpret_cast<decltype(&cuGetProcAddress_v2)>(ByAddress(first, "cuGetProcAddress", 12000));
  AskBy("by address 2 of address",
        [=](const char* name) { return ByAddress2(second_again, name, 12000); });
  AskBy("by the runtime", [](const char* name) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    CUDA_CHECK(static_cast<CUresult>(cudaGetDriverEntryPoint(name, &function, 0, &status)));
    return status == cudaDriverEntryPointSuccess ? function : nullptr;
  });
  AskBy("by the runtime and version", [](const char* name) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    CUDA_CHECK(static_cast<CUresult>(
        cudaGetDriverEntryPointByVersion(name, &function, 12000, 0, &status)));
    return status == cudaDriverEntryPointSuccess ? function : nullptr;
  });
}

// What a driver of CUDA 12.5 has, an older one has not, and none has.
void AskForMissing(void* library) {
  int version = 0;
  CUDA_CHECK(cuDriverGetVersion(&version));
  void* function = nullptr;
  for (const char* name : {"cuLibraryLoadData", "cuCtxCreate_v4", "cuNothing"})
    printf("rank %d driver %d: %s by dlsym %d, for all %d, next %d\n", job_rank(), version, name,
           dlsym(library, name) != nullptr, dlsym(RTLD_DEFAULT, name) != nullptr,
           dlsym(RTLD_NEXT, name) != nullptr);
  // Which of three functions: with the second one's parameters it makes a context.
  const auto get =
      reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(library, "cuGetProcAddress"));
  CUDA_CHECK(get("cuCtxCreate", &function, 13000, 0));
  CUcontext context = nullptr;
  if (version >= 12050)
    CUDA_CHECK(reinterpret_cast<decltype(&cuCtxCreate_v4)>(function)(&context, nullptr, 0, 0));
  else
    CUDA_CHECK(reinterpret_cast<decltype(&cuCtxCreate_v3)>(function)(&context, nullptr, 0, 0, 0));
  CUDA_CHECK(cuCtxDestroy_v2(context));
  const CUresult none = get("cuNothing", &function, 13000, 0);
  printf("rank %d cuNothing by address: %d, versions of dlvsym: %d\n", job_rank(), none,
         dlvsym(library, "cuDeviceGet", "CUDA_1") != nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  CUDA_CHECK(cuInit(0));
  const CUdevice device = Ask("linked", cuDeviceGet, cuDeviceGetCount);
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (library == nullptr) return 98;
  AskBy("by dlsym", [=](const char* name) { return dlsym(library, name); });
  AskBy("by dlsym for all", [](const char* name) { return dlsym(RTLD_DEFAULT, name); });
  AskBy("by dlsym next", [](const char* name) { return dlsym(RTLD_NEXT, name); });
  AskByAddress(library);
  if (cuda_app::Has(argc, argv, "--missing")) AskForMissing(library);
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
