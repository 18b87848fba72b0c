// Packed planes: codes of a few bits for the bytes of a short range, and the other bytes beside
// them. The exponents of floats mostly are such bytes. Faster than a Huffman code, and a tenth
// larger. docs/FORMAT.md, "Tensor codecs", is the specification.
//
// Pure functions, any thread: vectors of AVX-512 or AVX2 where the processor has them, which make
// the same bytes. The decoder treats its input as hostile.
#ifndef DEJA_FORMAT_PLANES_PACKED_PLANE_H_
#define DEJA_FORMAT_PLANES_PACKED_PLANE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/result.h"

namespace deja::format {

// Which bytes have a code: `first` and those after it, 2^bits - 1 of them.
struct PackedRange {
  uint8_t first = 0;
  unsigned bits = 0;  // 1 to kMostPackedBits; 0: nothing is saved

  // What a part of the plane says is best.
  static PackedRange For(std::span<const std::byte> plane);
};
inline constexpr unsigned kMostPackedBits = 4;

// Which vectors may be used; tests look at each.
enum class PackedVectors { kNone, kAvx2, kAvx512 };
PackedVectors BestPackedVectors();

// How many bytes of `out` are used; 0 if `out` is too short for it.
size_t PackPlane(std::span<const std::byte> plane, PackedRange range, std::span<std::byte> out,
                 PackedVectors vectors = BestPackedVectors());
// `in` must be exactly as long as the bytes of `plane` take.
Status UnpackPlane(std::span<const std::byte> in, uint8_t first, std::span<std::byte> plane,
                   PackedVectors vectors = BestPackedVectors());

}  // namespace deja::format

#endif  // DEJA_FORMAT_PLANES_PACKED_PLANE_H_
