// What calls that allocate device memory have in common. What the driver refuses for lack of device
// memory is tried again when other ranks have made room (turns.h). What the program has is counted,
// to find out which rank holds it all.
//
// Any thread, also within the runtime's and PyTorch's own locks. Others of the process may wait
// here for those locks, but no other rank does. Nothing happens where the rank shares no device.
#ifndef DEJA_REPLAYER_DEVICES_DEVICE_ALLOCATIONS_H_
#define DEJA_REPLAYER_DEVICES_DEVICE_ALLOCATIONS_H_

#include <cstdint>

#include "include/compat/cuda.h"
#include "preload/process/guard.h"
#include "replayer/turns/turns.h"

namespace deja::replayer {

constexpr int kCurrentDevice = -1;

// The number of the calling thread's device; 0: it has none.
int CurrentDevice();
Turns::Shortage DescribeShortage(uint64_t bytes, int device);

// `attempt` asks the driver for `bytes` (0: it is not known how many) of `device`.
template <typename Attempt>
CUresult TryForMemory(uint64_t bytes, int device, const Attempt& attempt) {
  CUresult result = attempt();
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  preload::Guard guard;
  Turns* turns = Turns::Get();
  while (result == CUDA_ERROR_OUT_OF_MEMORY && turns != nullptr) {
    if (!turns->MakeRoom(DescribeShortage(bytes, device))) break;
    result = attempt();
  }
  return result;
}

// The program has `bytes` of the current device from now on, by an address or a handle: both are
// the driver's, and differ.
void NoteAllocation(uint64_t name, uint64_t bytes);
// And no longer. How many bytes it had; 0: it is not known.
uint64_t ForgetAllocation(uint64_t name);

template <typename Attempt>
CUresult GiveBack(uint64_t name, const Attempt& attempt) {
  // First, since the driver may give the same address to another thread at once.
  const uint64_t bytes = ForgetAllocation(name);
  const CUresult result = attempt();
  if (bytes != 0 && result != CUDA_SUCCESS) NoteAllocation(name, bytes);
  return result;
}

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_DEVICES_DEVICE_ALLOCATIONS_H_
