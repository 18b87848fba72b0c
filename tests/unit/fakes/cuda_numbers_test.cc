// include/compat/cuda.h says what NVIDIA's header says.
#include "tests/unit/fakes/cuda_numbers.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "include/compat/cuda.h"

TEST(CudaHeaderTest, HasNvidiasNumbers) {
  const std::vector<CudaNumber> ours = {
#define DEJA_NUMBER(name) {#name, (unsigned long long)(name)},
#include "tests/unit/fakes/cuda_numbers.inc"
#undef DEJA_NUMBER
  };
  EXPECT_EQ(ours, NvidiasNumbers());
}

TEST(CudaHeaderTest, HasNvidiasNumbersOfProcessCheckpoints) {
  const std::vector<CudaNumber> ours = {
#define DEJA_NUMBER(name) {#name, (unsigned long long)(name)},
#include "tests/unit/fakes/cuda_checkpoint_numbers.inc"
#undef DEJA_NUMBER
  };
  const std::vector<CudaNumber> theirs = NvidiasCheckpointNumbers();
  if (theirs.empty()) GTEST_SKIP() << "the header here is older than CUDA 12.8";
  EXPECT_EQ(ours, theirs);
}
