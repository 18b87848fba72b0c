#include "tests/fakes/cuda/sim_version.h"

namespace cusim {

int DriverVersion() {
  return CUDA_SIM_VERSION;
}

CUresult InitResult() {
  return static_cast<CUresult>(CUDA_SIM_INIT);
}

}  // namespace cusim
