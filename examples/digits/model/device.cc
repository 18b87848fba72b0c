#include "device.h"

#include <cstdlib>

#include "../cuda/cuda_device.h"
#include "host_device.h"

namespace digits {

std::unique_ptr<Device> MakeDevice(Processor processor, int rank) {
  if (processor == Processor::kCpu) return MakeHostDevice();
  const char* local_rank = std::getenv("LOCAL_RANK");
  return std::make_unique<CudaDevice>(local_rank ? std::atoi(local_rank) : rank);
}

}  // namespace digits
