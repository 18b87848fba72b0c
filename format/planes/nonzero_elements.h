// Tensors with many zeros: a bitmap of the elements that are not zero, and these elements only. Bit
// i modulo 8, the lowest first, of byte i / 8 is 1 where element i is not zero. docs/FORMAT.md,
// "Tensor codecs".
//
// Pure functions, any thread; vectors where the processor has AVX-512 VBMI2.
#ifndef DEJA_FORMAT_PLANES_NONZERO_ELEMENTS_H_
#define DEJA_FORMAT_PLANES_NONZERO_ELEMENTS_H_

#include <cstddef>
#include <span>

namespace deja::format {

constexpr size_t BitmapBytes(size_t elements) {
  return (elements + 7) / 8;
}

// What is written or read after the last element that is meant, at most.
inline constexpr size_t kNonzeroSlack = 64;

// U: an unsigned integer of 1, 2, 4 or 8 bytes. Writes BitmapBytes(elements) bytes to `bitmap`, and
// the elements that are not zero to `out`, which has room for all and kNonzeroSlack. How many.
template <typename U>
size_t GatherNonzero(const std::byte* in, size_t elements, std::byte* bitmap, std::byte* out);

// How many elements the bitmap says are not zero.
size_t CountNonzero(std::span<const std::byte> bitmap);

// The reverse. `in` has as many elements as the bitmap's bits, and kNonzeroSlack that may be read.
template <typename U>
void ScatterNonzero(const std::byte* in, const std::byte* bitmap, size_t elements, std::byte* out);

}  // namespace deja::format

#endif  // DEJA_FORMAT_PLANES_NONZERO_ELEMENTS_H_
