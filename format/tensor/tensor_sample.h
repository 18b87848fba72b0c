// What a small part of a chunk says about how its byte planes are best coded.
#ifndef DEJA_FORMAT_TENSOR_TENSOR_SAMPLE_H_
#define DEJA_FORMAT_TENSOR_TENSOR_SAMPLE_H_

#include <array>
#include <cstddef>
#include <span>

#include "format/planes/byte_planes.h"

namespace deja::format {

enum class PlanePlan { kStore, kCheckConstant, kEntropy, kSearch };

struct PlaneSample {
  double entropy = 0;  // bits a byte, order 0
  bool constant = false;
  bool runs = false;  // equal neighbours are more frequent than chance: matches may be found
  double equal_neighbours = 0;

  // How to code a plane like this one.
  [[nodiscard]] PlanePlan Plan() const;
  [[nodiscard]] double Bits() const;  // of a byte, coded as planned
};

struct TensorSample {
  bool rotated = false;  // elements, left by one bit
  bool sparse = false;   // only of the elements that are not zero
  std::array<PlaneSample, kMaxPlanes> planes;
};

// The better one of rotated or not, with zeros or without. U: an unsigned integer of 1, 2, 4 or 8
// bytes.
template <typename U>
TensorSample SampleTensor(std::span<const std::byte> in);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TENSOR_TENSOR_SAMPLE_H_
