// The one PTX module that the simulated driver can run: that of digest/digest_kernel.cu. Any
// thread.
#ifndef DEJA_TESTS_FAKES_CUDA_KERNELS_SIM_DIGEST_H_
#define DEJA_TESTS_FAKES_CUDA_KERNELS_SIM_DIGEST_H_

#include <cstdint>
#include <functional>
#include <string>

namespace cusim {

struct DigestKernel {
  const char* name;
  uint32_t number;
};

// True if a module's image is PTX and not a table of kernels.
bool IsPtx(const void* image);
// Null: the code has no such kernel, or it is not known here.
const DigestKernel* FindDigestKernel(const std::string& ptx, const std::string& name);
// What a launch does; null if it is not one of this kernel.
std::function<void()> DigestWork(const DigestKernel& kernel, unsigned int thread_blocks,
                                 unsigned int threads, void** params);
// How many were made.
int DigestLaunches();

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_KERNELS_SIM_DIGEST_H_
