// The kernels of kernels.h. tools/make_ptx.py makes kernels.ptx.inc of this file with clang, which
// needs nothing of CUDA's; nvcc compiles it too (--fmad=false: a product and a sum are rounded,
// each of them, as on the processor).
#include "examples/digits/cuda/kernels.h"

namespace digits::kernels {
namespace {

#if defined(__NVCC__)
__device__ inline uint32_t FirstElement() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ inline uint32_t Threads() {
  return gridDim.x * blockDim.x;
}
#else
DIGITS_GPU uint32_t FirstElement() {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}
DIGITS_GPU uint32_t Threads() {
  return __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
}
#endif

}  // namespace
}  // namespace digits::kernels

#define DIGITS_KERNEL(name, Kernel)                                                               \
  extern "C" __attribute__((global)) void name(digits::kernels::Kernel kernel) {                  \
    const uint32_t threads = digits::kernels::Threads();                                          \
    for (uint32_t i = digits::kernels::FirstElement(); i < kernel.count; i += threads) kernel(i); \
  }
DIGITS_KERNELS(DIGITS_KERNEL)
