// SimulatedContexts: a test that starts on the first of two devices of the simulated driver, with a
// stream of its own. What it makes there stays until the process ends.
#ifndef DEJA_TESTS_UNIT_PRELOAD_CUDA_SIMULATED_CONTEXTS_H_
#define DEJA_TESTS_UNIT_PRELOAD_CUDA_SIMULATED_CONTEXTS_H_

#include <gtest/gtest.h>

#include "preload/cuda/driver.h"
#include "tests/fakes/cuda/cuda_sim.h"

namespace deja::preload {

class SimulatedContexts : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(cuDevicePrimaryCtxRetain(&contexts_[i], i), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(contexts_[0]), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_NE(FindCudaDriver(), nullptr);
  }
  void TearDown() override { cuCtxSetCurrent(nullptr); }

  CUcontext contexts_[2] = {};
  CUstream stream_ = nullptr;
};

}  // namespace deja::preload

#endif  // DEJA_TESTS_UNIT_PRELOAD_CUDA_SIMULATED_CONTEXTS_H_
