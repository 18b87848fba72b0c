// The digest loops for CPUs with AVX-512; compiled for it (preload/CMakeLists.txt) and entered only
// after a look at the CPU.
#if defined(__x86_64__)
#define DEJA_KERNELS kAvx512Kernels
#include "digest/digest_loops.h"
#endif
