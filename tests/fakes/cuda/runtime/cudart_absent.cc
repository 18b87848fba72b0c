// What PyTorch's wheel links of libcudart.so.12 and no test needs: there, so that the wheel loads,
// and not supported, which whoever calls it is told on stderr, too.
#include <cstdio>

#include "tests/fakes/cuda/runtime/cudart_calls.h"

extern "C" {

#define ABSENT(name)                                                                      \
  __attribute__((visibility("default"))) cudaError_t name(void) {                         \
    std::fprintf(stderr, "cudart_sim: " #name " is not in this stand-in of libcudart\n"); \
    return cudart::Told(CUDA_ERROR_NOT_SUPPORTED);                                        \
  }
ABSENT(cudaDeviceGetDefaultMemPool)
ABSENT(cudaFreeAsync)
ABSENT(cudaFuncSetAttribute)
ABSENT(cudaGraphAddEmptyNode)
ABSENT(cudaGraphDebugDotPrint)
ABSENT(cudaGraphGetNodes)
ABSENT(cudaGraphInstantiate)
ABSENT(cudaGraphNodeGetDependencies)
ABSENT(cudaGraphNodeGetType)
ABSENT(cudaIpcCloseMemHandle)
ABSENT(cudaIpcGetEventHandle)
ABSENT(cudaIpcGetMemHandle)
ABSENT(cudaIpcOpenEventHandle)
ABSENT(cudaIpcOpenMemHandle)
ABSENT(cudaMallocAsync)
ABSENT(cudaMemPoolGetAttribute)
ABSENT(cudaMemPoolSetAccess)
ABSENT(cudaMemPoolSetAttribute)
ABSENT(cudaMemPoolTrimTo)
ABSENT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
ABSENT(cudaProfilerStart)
ABSENT(cudaProfilerStop)
ABSENT(cudaStreamAddCallback)
ABSENT(cudaStreamUpdateCaptureDependencies)
#undef ABSENT

}  // extern "C"
