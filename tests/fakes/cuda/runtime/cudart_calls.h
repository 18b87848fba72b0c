// What the files of the CUDA runtime stand-in share. Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_RUNTIME_CUDART_CALLS_H_
#define DEJA_TESTS_FAKES_CUDA_RUNTIME_CUDART_CALLS_H_

#include <cstdint>

#include "tests/fakes/cuda/runtime/cudart_sim.h"

namespace cudart {

// A failure is the thread's last error; success changes nothing. That something is not ready yet is
// no failure.
cudaError_t Told(CUresult result);
// Initialises the driver; a thread that has no context uses the first device.
CUresult Ready();

template <typename Call>
cudaError_t Do(Call&& call) {
  const CUresult ready = Ready();
  return Told(ready != CUDA_SUCCESS ? ready : call());
}

inline CUdeviceptr Address(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

}  // namespace cudart

#endif  // DEJA_TESTS_FAKES_CUDA_RUNTIME_CUDART_CALLS_H_
