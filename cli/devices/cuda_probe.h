// What the CUDA driver of this machine reports, as a program would find it.
//
// Main thread only. A separate process loads and initialises the driver. The driver leaves nothing
// in the caller, and a hang or crash of the driver stays in that process.
#ifndef DEJA_CLI_DEVICES_CUDA_PROBE_H_
#define DEJA_CLI_DEVICES_CUDA_PROBE_H_

#include <optional>
#include <string>

namespace deja::cli {

struct CudaFound {
  enum class What { kDevices, kNoDevice, kFailed, kNoDriver };
  What what = What::kNoDriver;
  int version = 0;  // 12080: of CUDA 12.8; 0: it did not say
  int devices = 0;
  std::string text;  // "a CUDA driver for 12.8 with 2 devices", "no CUDA driver: libcuda.so.1 …"
  std::string fix;   // empty: there is nothing to do
};

// `visible`: CUDA_VISIBLE_DEVICES of the program; nothing: it has none.
CudaFound LookForCuda(const std::optional<std::string>& visible);

}  // namespace deja::cli

#endif  // DEJA_CLI_DEVICES_CUDA_PROBE_H_
