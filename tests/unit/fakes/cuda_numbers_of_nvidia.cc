// The numbers of NVIDIA's own header, for the comparison with ours; types are compared here.
#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "tests/unit/fakes/cuda_numbers.h"

// A versioned name that we call is what the header calls it without the version, or exists as it
// is.
#define DEJA_CU(name, params) \
  static_assert(std::is_same_v<decltype(&name), CUresult(*) params>, #name);
#define DEJA_CU_OPTIONAL(name, params) DEJA_CU(name, params)
#include "preload/cuda/driver.def"
#if CUDA_VERSION >= 12080
#include "cli/devices/cuda_checkpoint.def"
#endif
#undef DEJA_CU_OPTIONAL
#undef DEJA_CU

static_assert(std::is_same_v<CUmemGenericAllocationHandle, unsigned long long>);

std::vector<CudaNumber> NvidiasNumbers() {
  return {
#define DEJA_NUMBER(name) {#name, (unsigned long long)(name)},
#include "tests/unit/fakes/cuda_numbers.inc"
#undef DEJA_NUMBER
  };
}

std::vector<CudaNumber> NvidiasCheckpointNumbers() {
  return {
#if CUDA_VERSION >= 12080
#define DEJA_NUMBER(name) {#name, (unsigned long long)(name)},
#include "tests/unit/fakes/cuda_checkpoint_numbers.inc"
#undef DEJA_NUMBER
#endif
  };
}
