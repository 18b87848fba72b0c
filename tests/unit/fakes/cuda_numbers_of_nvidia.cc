// The numbers of NVIDIA's own header, for the comparison with ours; types are compared here.
#include <cuda.h>

#include <type_traits>

#include "tests/unit/fakes/cuda_numbers.h"

// A versioned name that we call is what the header calls it without the version, or exists as it
// is.
#define DEJA_CU(name, params) \
  static_assert(std::is_same_v<decltype(&name), CUresult(*) params>, #name);
#define DEJA_CU_OPTIONAL(name, params) DEJA_CU(name, params)
#include "preload/cuda/driver.def"
#undef DEJA_CU_OPTIONAL
#undef DEJA_CU

std::vector<CudaNumber> NvidiasNumbers() {
  return {
#define DEJA_NUMBER(name) {#name, (unsigned long long)(name)},
#include "tests/unit/fakes/cuda_numbers.inc"
#undef DEJA_NUMBER
  };
}
