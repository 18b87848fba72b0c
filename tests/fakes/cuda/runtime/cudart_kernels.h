// Kernels that a program brings as nvcc compiles them: registered by mangled name when a library is
// loaded. None can run here. The processor does the few that PyTorch uses where nothing else does,
// known by name: filling, copying and simple arithmetic on tensors without gaps. Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_RUNTIME_CUDART_KERNELS_H_
#define DEJA_TESTS_FAKES_CUDA_RUNTIME_CUDART_KERNELS_H_

#include <functional>

namespace cudart {

// Mangled; null: it is not registered.
const char* KernelName(const void* host_function);
// What a launch of it with these parameters does; null: this one cannot run.
std::function<void()> KernelWork(const char* name, unsigned int grid_y, void** params);

}  // namespace cudart

#endif  // DEJA_TESTS_FAKES_CUDA_RUNTIME_CUDART_KERNELS_H_
