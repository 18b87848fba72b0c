// CUDA's driver, found when the program runs: it is built, and trains in host memory, where there
// is none.
#ifndef DEJA_EXAMPLES_DIGITS_CUDA_DRIVER_H_
#define DEJA_EXAMPLES_DIGITS_CUDA_DRIVER_H_

#include <cuda.h>

#include <cstddef>

namespace digits {

// X(function as libcuda.so.1 exports it, types of its parameters)
#define DIGITS_CUDA_FUNCTIONS(X)                                                         \
  X(cuInit, (unsigned int))                                                              \
  X(cuDeviceGetCount, (int*))                                                            \
  X(cuDeviceGet, (CUdevice*, int))                                                       \
  X(cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice))                                    \
  X(cuCtxSetCurrent, (CUcontext))                                                        \
  X(cuMemAlloc_v2, (CUdeviceptr*, size_t))                                               \
  X(cuMemFree_v2, (CUdeviceptr))                                                         \
  X(cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                         \
  X(cuStreamCreate, (CUstream*, unsigned int))                                           \
  X(cuStreamSynchronize, (CUstream))                                                     \
  X(cuStreamWaitEvent, (CUstream, CUevent, unsigned int))                                \
  X(cuEventCreate, (CUevent*, unsigned int))                                             \
  X(cuEventRecord, (CUevent, CUstream))                                                  \
  X(cuModuleLoadData, (CUmodule*, const void*))                                          \
  X(cuModuleGetFunction, (CUfunction*, CUmodule, const char*))                           \
  X(cuLaunchKernel, (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, \
                     unsigned int, unsigned int, unsigned int, CUstream, void**, void**))

struct CudaDriver {
#define DIGITS_MEMBER(name, parameters) CUresult(*name) parameters = nullptr;
  DIGITS_CUDA_FUNCTIONS(DIGITS_MEMBER)
#undef DIGITS_MEMBER
};

// Initialised. Prints what is missing and exits where there is no driver.
const CudaDriver& TheCudaDriver();

// Ends the process unless `result` is success.
void CheckCuda(CUresult result, const char* call, const char* what);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_CUDA_DRIVER_H_
