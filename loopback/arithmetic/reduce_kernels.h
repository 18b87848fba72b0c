// Tables of the inner loops of reduce.cc, compiled once for any x86-64 (or other) processor and
// once for AVX2. Both give the same bits. Pure functions; any thread.
#ifndef DEJA_LOOPBACK_ARITHMETIC_REDUCE_KERNELS_H_
#define DEJA_LOOPBACK_ARITHMETIC_REDUCE_KERNELS_H_

#include <cstddef>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace deja::loopback {

#if defined(__x86_64__)
// Whether kAvx2Kernels run here. Not all by __builtin_cpu_supports: clang's does not know f16c.
inline bool CpuHasAvx2() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 &&
         (ecx & bit_F16C) != 0;
}
#endif

// dst = local (op) accumulated
using CombineKernel = void (*)(void* dst, const void* local, const void* accumulated, size_t count);
// dst = x * scalar
using ScaleKernel = void (*)(void* dst, const void* x, const void* scalar, size_t count);
// x = x / divisor
using DivideKernel = void (*)(void* x, int divisor, size_t count);

// Indexed by ncclDataType_t, and by Reduction::Combine. Null for fp8, which goes through tables,
// and where a floating-point type is never divided.
struct KernelTable {
  CombineKernel combine[12][4];
  ScaleKernel scale[12];
  DivideKernel divide[12];
};

extern const KernelTable kPlainKernels;
extern const KernelTable kAvx2Kernels;

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_ARITHMETIC_REDUCE_KERNELS_H_
