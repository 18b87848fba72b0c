// Npy: a tensor as a file of NumPy's.
//
// Types that NumPy lacks are stored as integers of their width: bfloat16 as uint16, float8 as
// uint8. Pure; any thread.
#ifndef DEJA_CLI_TENSORS_NPY_H_
#define DEJA_CLI_TENSORS_NPY_H_

#include <cstdint>
#include <string>

namespace deja::cli {

// What comes before the elements: a multiple of 64 bytes.
std::string NpyHeader(uint32_t dtype, uint64_t count);

}  // namespace deja::cli

#endif  // DEJA_CLI_TENSORS_NPY_H_
