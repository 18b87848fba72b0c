// The digest loops for every CPU of this architecture.
#define DEJA_KERNELS kBaselineKernels
#include "digest/digest_loops.h"
