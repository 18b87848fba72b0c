// The numbers of a header as a list, so that two headers with the same names can be compared.
#ifndef DEJA_TESTS_UNIT_FAKES_CUDA_NUMBERS_H_
#define DEJA_TESTS_UNIT_FAKES_CUDA_NUMBERS_H_

#include <string>
#include <utility>
#include <vector>

using CudaNumber = std::pair<std::string, unsigned long long>;

std::vector<CudaNumber> NvidiasNumbers();
// Empty: its header is older than these.
std::vector<CudaNumber> NvidiasCheckpointNumbers();

#endif  // DEJA_TESTS_UNIT_FAKES_CUDA_NUMBERS_H_
