#include <curand.h>

#include <type_traits>

#include "api/table.h"
#include "tests/conformance/curand/curand_numbers.h"

#define DEJA_FN(id, result, name, since, klass, ...) \
  static_assert(std::is_same_v<decltype(::name), result DEJA_TYPES(__VA_ARGS__)>);
#include "api/tables/curand.def"
#undef DEJA_FN

CurandNumbers SystemCurandNumbers() {
  return {
#include "tests/conformance/curand/curand_numbers.inc"
  };
}
