// What the parts of the simulated driver's API have in common. Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_DRIVER_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_DRIVER_H_

#include <cstdint>
#include <functional>

#include "include/compat/cuda.h"

namespace cusim {

// cuInit has been called, and has worked.
bool IsReady();
// The calling thread's context; null: it has none.
CUcontext Current();
// A call that may not be made while another thread captures in the global mode, or this one.
CUresult CheckUnsafeCall();
CUresult Enqueue(CUstream handle, std::function<void()> work,
                 CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY);
// The stream behind a handle, which may be a default stream's.
CUresult StreamOf(CUstream handle, CUstream* stream);
// Null: it is not retained yet.
CUcontext PrimaryOf(CUdevice device);
// The board's number (sim_board.h) of a device of the program's.
int OnBoard(int device);
// A number from the environment; 0: it is not there.
uint64_t Setting(const char* name);

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_DRIVER_H_
