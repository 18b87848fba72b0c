// include/compat/cuda.h says what NVIDIA's header says.
#include "tests/unit/fakes/cuda_numbers.h"

#include <gtest/gtest.h>

#include "include/compat/cuda.h"

TEST(CudaHeaderTest, HasNvidiasNumbers) {
  const std::vector<CudaNumber> ours = {
#define DEJA_NUMBER(name) {#name, (unsigned long long)(name)},
#include "tests/unit/fakes/cuda_numbers.inc"
#undef DEJA_NUMBER
  };
  EXPECT_EQ(ours, NvidiasNumbers());
}
