// The one kernel that all layers compute with.
#ifndef DEJA_EXAMPLES_DIGITS_MODEL_MATMUL_H_
#define DEJA_EXAMPLES_DIGITS_MODEL_MATMUL_H_

#include <cstddef>

namespace digits {

// C += A B for an m x k matrix A, a row-major k x n matrix B and a row-major m x n matrix C.
// Element (i, j) of A is a[i * a_row + j * a_column], so that a transposed matrix needs no copy.
// Each element of C is summed over k in ascending order whatever the sizes are: the same numbers
// give the same bits.
void MatMulAdd(size_t m, size_t n, size_t k, const float* a, size_t a_row, size_t a_column,
               const float* b, float* c);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_MODEL_MATMUL_H_
