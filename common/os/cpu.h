// The CPU's features by which libraries choose code: C libraries, BLAS and oneDNN have different
// kernels for different CPUs, and those give different bits.
//
// Asked of the CPU itself. Any thread; no system call.
#ifndef DEJA_COMMON_OS_CPU_H_
#define DEJA_COMMON_OS_CPU_H_

#include <string>

namespace deja {

// "Intel(R) Xeon(R) Gold 6230"; empty if it does not say.
std::string CpuModel();
// Names of the instruction sets that matter, in a fixed order, as /proc/cpuinfo writes them:
// "sse4_2 avx avx2 fma".
std::string CpuFeatures();

}  // namespace deja

#endif  // DEJA_COMMON_OS_CPU_H_
