// The difference of a chunk to one before it, which is coded in place of the chunk's bytes
// (docs/FORMAT.md, "Differences").
//
// For elements of several bytes it is that of their places in the order of floating point values,
// where neighbours differ by 1. For single bytes it is their XOR. Pure functions, any thread. All
// spans have the same size; bytes after the last whole element are XORed.
#ifndef DEJA_FORMAT_TENSOR_ELEMENT_DIFFERENCE_H_
#define DEJA_FORMAT_TENSOR_ELEMENT_DIFFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/tensor/tensor_codec.h"

namespace deja::format {

constexpr bool IsDifference(TensorCodec codec) {
  return codec == TensorCodec::kDifference || codec == TensorCodec::kElementDifference;
}

// How differences of such elements are written.
constexpr TensorCodec DifferenceCodec(uint32_t element_size) {
  return element_size == 1 ? TensorCodec::kDifference : TensorCodec::kElementDifference;
}

// `codec` is a difference, `element_size` 1, 2, 4 or 8.
struct DifferenceKind {
  TensorCodec codec = TensorCodec::kDifference;
  uint32_t element_size = 1;

  friend bool operator==(const DifferenceKind& a, const DifferenceKind& b) {
    return a.codec == b.codec && a.element_size == b.element_size;
  }
};

// The difference of `bytes` to `base`.
void MakeDifference(DifferenceKind kind, std::span<const std::byte> bytes,
                    std::span<const std::byte> base, std::span<std::byte> out);
// `sum`, a difference to what is itself `earlier` away from its base, becomes that to this base.
void JoinDifferences(DifferenceKind kind, std::span<const std::byte> earlier,
                     std::span<std::byte> sum);
// `out`, a difference to `base`, becomes the bytes.
void ApplyDifference(DifferenceKind kind, std::span<const std::byte> base,
                     std::span<std::byte> out);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TENSOR_ELEMENT_DIFFERENCE_H_
