// Which driver it is: one object file of each library that is built (CMakeLists.txt). What a driver
// of an older version lacks its library does not export.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_VERSION_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_VERSION_H_

#include "include/compat/cuda.h"

namespace cusim {

// 12080: as of CUDA 12.8.
int DriverVersion();
// What cuInit returns before it looks for devices.
CUresult InitResult();

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_VERSION_H_
