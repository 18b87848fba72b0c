// CudaDriver: the functions of the program's CUDA driver, looked up in the library that the program
// (or its CUDA runtime) has loaded. Nothing is linked, loaded or initialised.
//
// Made once; any thread. dlerror and errno are kept.
#ifndef DEJA_PRELOAD_CUDA_DRIVER_H_
#define DEJA_PRELOAD_CUDA_DRIVER_H_

#include "include/compat/cuda.h"

namespace deja::preload {

struct CudaDriver {
#define DEJA_CU(name, params) CUresult(*name) params = nullptr;
#define DEJA_CU_OPTIONAL(name, params) CUresult(*name) params = nullptr;
#include "preload/cuda/driver.def"
#undef DEJA_CU_OPTIONAL
#undef DEJA_CU
};

// Null while no driver is loaded, or if it lacks one of the functions that are not optional.
const CudaDriver* FindCudaDriver();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CUDA_DRIVER_H_
