// DeviceSwap: takes the device memory of another process to the host, and brings it back.
//
// Main thread only.
#ifndef DEJA_CLI_DEVICES_DEVICE_SWAP_H_
#define DEJA_CLI_DEVICES_DEVICE_SWAP_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "common/result.h"

namespace deja::cli {

struct SwapResult {
  enum class How {
    kDone,
    kBusy,     // its devices have work that does not end: it goes on as it was
    kNoRoom,   // it stays where it is: what it needs is not free on its devices
    kRefused,  // the driver cannot: it goes on as it was
    kLost,     // the driver failed half way: the process cannot use its devices any more
  };
  How how = How::kDone;
  std::string why;  // unless it is done
};

class DeviceSwap {
 public:
  virtual ~DeviceSwap() = default;
  // Waits for the work that its devices have, then for the copy. Calls of CUDA in that process wait
  // from now on.
  virtual SwapResult TakeOut(pid_t process) = 0;
  virtual SwapResult BringBack(pid_t process) = 0;
};

// By the driver's process checkpoint calls (570 and later); `driver`: the file, which is looked for
// as programs do. An error says what it lacks.
Result<std::unique_ptr<DeviceSwap>> OpenCudaSwap(const std::string& driver = "libcuda.so.1");

}  // namespace deja::cli

#endif  // DEJA_CLI_DEVICES_DEVICE_SWAP_H_
