// The simulated driver's functions by name, as cuGetProcAddress finds them: addresses within this
// library, so what is preloaded before it is not asked.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/fakes/cuda/sim_version.h"

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/cuda_sim.h"
#pragma GCC visibility pop

namespace {

struct Function {
  const char* symbol;
  int since;
  void* address;
};
const Function kFunctions[] = {
#define DEJA_SIM(name, symbol, since) {#symbol, since, reinterpret_cast<void*>(&(name))},
#include "tests/fakes/cuda/sim_functions.def"
#undef DEJA_SIM
};

// The newest one that is not newer than what is asked for; null: none is.
const Function* Find(const char* symbol, int version) {
  const Function* found = nullptr;
  for (const Function& function : kFunctions)
    if (std::strcmp(function.symbol, symbol) == 0 &&
        function.since <= std::min(version, cusim::DriverVersion()) &&
        (found == nullptr || found->since < function.since))
      found = &function;
  return found;
}

}  // namespace

extern "C" {

CUresult cuDriverGetVersion(int* version) {
  *version = cusim::DriverVersion();
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, unsigned long long) {
  const Function* found = Find(symbol, version);
  *function = found == nullptr ? nullptr : found->address;
  return found == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                             unsigned long long flags, CUdriverProcAddressQueryResult* status) {
  const CUresult result = cuGetProcAddress(symbol, function, version, flags);
  if (status != nullptr)
    *status = result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS
              : Find(symbol, cusim::DriverVersion()) == nullptr
                  ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                  : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  return result;
}

}  // extern "C"
