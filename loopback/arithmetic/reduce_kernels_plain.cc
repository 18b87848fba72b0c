#include "loopback/arithmetic/reduce_kernels_impl.h"

namespace deja::loopback {

const KernelTable kPlainKernels = kTable;

}  // namespace deja::loopback
