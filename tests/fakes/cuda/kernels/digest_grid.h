// The kernels of digest/digest_kernel.cu as a GPU would run them, on the processor: the same
// source, all threads of a launch one after the other in an order that differs from launch to
// launch.
//
// Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_KERNELS_DIGEST_GRID_H_
#define DEJA_TESTS_FAKES_CUDA_KERNELS_DIGEST_GRID_H_

#include <cstdint>

#include "digest/digest_kernel.h"

namespace cusim {

// `kernel`: its number in DEJA_DIGEST_KERNELS.
void RunDigestGrid(uint32_t kernel, const deja::digest::gpu::Work& work, uint32_t thread_blocks);

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_KERNELS_DIGEST_GRID_H_
