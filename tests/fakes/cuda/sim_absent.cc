// Functions that a driver has to have for PyTorch, and that the simulated one cannot do.
#include <cstdio>

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/cuda_sim.h"
#pragma GCC visibility pop

extern "C" {

#define ABSENT(name)                                                      \
  CUresult name(void) {                                                   \
    std::fprintf(stderr, "cuda_sim: " #name " is not in this driver\\n"); \
    return CUDA_ERROR_NOT_SUPPORTED;                                      \
  }
ABSENT(cuMemAddressFree)
ABSENT(cuMemAddressReserve)
ABSENT(cuMemExportToShareableHandle)
ABSENT(cuMemGetAllocationGranularity)
ABSENT(cuMemImportFromShareableHandle)
ABSENT(cuMemMap)
ABSENT(cuMemSetAccess)
ABSENT(cuMemUnmap)
ABSENT(cuMemsetD32Async)
ABSENT(cuMulticastAddDevice)
ABSENT(cuMulticastBindMem)
ABSENT(cuMulticastCreate)
ABSENT(cuMulticastUnbind)
ABSENT(cuStreamWriteValue32_v2)
#undef ABSENT

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS               ? "no error"
          : error == CUDA_ERROR_NOT_SUPPORTED ? "operation not supported"
                                              : "an error of the simulated driver";
  return CUDA_SUCCESS;
}

}  // extern "C"
