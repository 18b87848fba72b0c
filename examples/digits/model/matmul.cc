#include "matmul.h"

#include <cstring>

namespace digits {
namespace {

// Four floats in a register, spelled out because GCC does not vectorise loops of unknown length at
// every level of optimisation.
typedef float Lanes __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;

Lanes Load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

void Store(float* to, Lanes lanes) {
  std::memcpy(to, &lanes, sizeof lanes);
}

// A tile of C, kRows x (kColumns * 4), held in registers over the whole sum.
template <size_t kRows, size_t kColumns>
void Tile(size_t n, size_t k, const float* a, size_t a_row, size_t a_column, const float* b,
          float* c) {
  Lanes sum[kRows][kColumns];
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kColumns; ++j) sum[i][j] = Load(c + i * n + j * kLanes);
  }
  for (size_t p = 0; p < k; ++p) {
    Lanes row[kColumns];
    for (size_t j = 0; j < kColumns; ++j) row[j] = Load(b + p * n + j * kLanes);
    for (size_t i = 0; i < kRows; ++i) {
      const float factor = a[i * a_row + p * a_column];
      for (size_t j = 0; j < kColumns; ++j) sum[i][j] += factor * row[j];
    }
  }
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kColumns; ++j) Store(c + i * n + j * kLanes, sum[i][j]);
  }
}

void Element(size_t n, size_t k, const float* a, size_t a_column, const float* b, float* c) {
  float sum = *c;
  for (size_t p = 0; p < k; ++p) sum += a[p * a_column] * b[p * n];
  *c = sum;
}

}  // namespace

void MatMulAdd(size_t m, size_t n, size_t k, const float* a, size_t a_row, size_t a_column,
               const float* b, float* c) {
  constexpr size_t kRows = 4;
  for (size_t i = 0; i < m;) {
    const size_t rows = m - i >= kRows ? kRows : 1;
    const float* a_i = a + i * a_row;
    float* c_i = c + i * n;
    size_t j = 0;
    for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
      if (rows == kRows) {
        Tile<kRows, 2>(n, k, a_i, a_row, a_column, b + j, c_i + j);
      } else {
        Tile<1, 2>(n, k, a_i, a_row, a_column, b + j, c_i + j);
      }
    }
    for (; j < n; ++j) {
      for (size_t row = 0; row < rows; ++row) {
        Element(n, k, a_i + row * a_row, a_column, b + j, c_i + row * n + j);
      }
    }
    i += rows;
  }
}

}  // namespace digits
