// The kernels of examples/digits (cuda/kernels.h), run on the processor for the simulated driver:
// the same source, all elements of a launch one after the other, in an order that differs from
// launch to launch. Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_KERNELS_SIM_DIGITS_H_
#define DEJA_TESTS_FAKES_CUDA_KERNELS_SIM_DIGITS_H_

#include <functional>
#include <string>

namespace cusim {

// What a launch with these parameters does.
using DigitsKernel = std::function<void()> (*)(void** params);

// Null: the code has no such kernel, or it is not known here.
DigitsKernel FindDigitsKernel(const std::string& ptx, const std::string& name);

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_KERNELS_SIM_DIGITS_H_
