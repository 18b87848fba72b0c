#include "include/compat/curand.h"
#include "tests/conformance/curand/curand_numbers.h"

CurandNumbers CompatCurandNumbers() {
  return {
#include "tests/conformance/curand/curand_numbers.inc"
  };
}
