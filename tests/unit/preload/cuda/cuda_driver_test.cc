// The driver is not there when the program begins, and comes with a library that it opens later.
#include "preload/cuda/driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace deja::preload {
namespace {

TEST(CudaDriverTest, IsFoundOnceItIsLoaded) {
  EXPECT_EQ(FindCudaDriver(), nullptr);
  EXPECT_EQ(FindCudaDriver(), nullptr);
  ASSERT_NE(dlopen(DEJA_TEST_CUDA, RTLD_NOW), nullptr) << dlerror();
  ASSERT_NE(FindCudaDriver(), nullptr);
  EXPECT_NE(FindCudaDriver()->cuPointerGetAttributes, nullptr);
}

}  // namespace
}  // namespace deja::preload
