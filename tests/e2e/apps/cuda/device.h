// What the programs of this folder share: the device, kernels on it, and one line of what was
// computed.
#ifndef DEJA_TESTS_E2E_APPS_CUDA_DEVICE_H_
#define DEJA_TESTS_E2E_APPS_CUDA_DEVICE_H_

#include <cstdint>
#include <vector>

#include "tests/e2e/apps/cuda/kernels.h"
#include "tests/e2e/apps/record/job.h"
#include "tests/fakes/cuda/cuda_sim.h"

#define CUDA_CHECK(call)                                                             \
  do {                                                                               \
    CUresult cuda_result_ = (call);                                                  \
    if (cuda_result_ != CUDA_SUCCESS) {                                              \
      fprintf(stderr, "rank %d: %s returned %d\n", job_rank(), #call, cuda_result_); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

namespace cuda_app {

// The device of this rank is the calling thread's current one.
inline void MakeContext() {
  int devices = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUDA_CHECK(cuInit(0));
  CUDA_CHECK(cuDeviceGetCount(&devices));
  CUDA_CHECK(cuDeviceGet(&device, job_rank() % devices));
  CUDA_CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CUDA_CHECK(cuCtxSetCurrent(context));
}

struct Device {
  CUfunction fill = nullptr;
  CUfunction add = nullptr;
  CUfunction mix = nullptr;

  Device() {
    CUmodule module = nullptr;
    MakeContext();
    const void* image = IsSimulated() ? static_cast<const void*>(kHostKernels) : kPtx;
    CUDA_CHECK(cuModuleLoadData(&module, image));
    CUDA_CHECK(cuModuleGetFunction(&fill, module, "fill"));
    CUDA_CHECK(cuModuleGetFunction(&add, module, "add"));
    CUDA_CHECK(cuModuleGetFunction(&mix, module, "mix"));
  }

  static CUdeviceptr Floats(size_t count) {
    CUdeviceptr memory = 0;
    CUDA_CHECK(cuMemAlloc_v2(&memory, count * sizeof(float)));
    return memory;
  }
  void Fill(CUdeviceptr out, uint64_t count, uint64_t seed, CUstream stream) const {
    void* params[] = {&out, &count, &seed};
    Launch(fill, params, stream);
  }
  void Add(CUdeviceptr to, CUdeviceptr from, uint64_t count, CUstream stream) const {
    void* params[] = {&to, &from, &count};
    Launch(add, params, stream);
  }
  void Mix(CUdeviceptr to, CUdeviceptr from, uint64_t count, CUstream stream) const {
    void* params[] = {&to, &from, &count};
    Launch(mix, params, stream);
  }

 private:
  static void Launch(CUfunction function, void** params, CUstream stream) {
    CUDA_CHECK(cuLaunchKernel(function, 64, 1, 1, 256, 1, 1, 0, stream, params, nullptr));
  }
};

inline cudaStream_t ForNccl(CUstream stream) {
  return reinterpret_cast<cudaStream_t>(stream);
}

inline void* Buffer(CUdeviceptr memory) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(memory));
}

inline bool Has(int argc, char** argv, const char* flag) {
  for (int i = 1; i < argc; ++i)
    if (strcmp(argv[i], flag) == 0) return true;
  return false;
}

// FNV-1a of what the device has when the stream is done.
inline uint64_t HashOf(CUdeviceptr memory, size_t count, CUstream stream) {
  std::vector<uint32_t> words(count);
  CUDA_CHECK(cuMemcpyAsync(reinterpret_cast<uintptr_t>(words.data()), memory,
                           count * sizeof(uint32_t), stream));
  CUDA_CHECK(cuStreamSynchronize(stream));
  uint64_t hash = 14695981039346656037u;
  for (uint32_t bits : words) hash = (hash ^ bits) * 1099511628211u;
  return hash;
}

}  // namespace cuda_app

#endif  // DEJA_TESTS_E2E_APPS_CUDA_DEVICE_H_
