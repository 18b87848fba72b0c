// Kernels that a program brings as nvcc compiles them: registered by mangled name when a library is
// loaded. None can run here; the few that PyTorch uses where nothing else does, filling, copying
// and simple arithmetic on tensors without gaps, are known by name and done by the processor.
// Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_RUNTIME_CUDART_KERNELS_H_
#define DEJA_TESTS_FAKES_CUDA_RUNTIME_CUDART_KERNELS_H_

#include <functional>

namespace cudart {

// Mangled; null: nobody has registered it.
const char* KernelName(const void* host_function);
// What a launch of it with so many rows of blocks and these parameters does; null: this one cannot
// run.
std::function<void()> KernelWork(const char* name, unsigned int grid_y, void** params);

}  // namespace cudart

#endif  // DEJA_TESTS_FAKES_CUDA_RUNTIME_CUDART_KERNELS_H_
