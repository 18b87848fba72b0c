// The digest loops for CPUs with AVX2; compiled with -mavx2 (preload/CMakeLists.txt) and entered
// only after a look at the CPU.
#if defined(__x86_64__)
#define DEJA_KERNELS kAvx2Kernels
#include "digest/digest_loops.h"
#endif
