// Compiled with -mavx2 -mf16c where the target is x86-64, and never called where the processor
// lacks them.
#include "loopback/arithmetic/reduce_kernels_impl.h"

namespace deja::loopback {

const KernelTable kAvx2Kernels = kTable;

}  // namespace deja::loopback
