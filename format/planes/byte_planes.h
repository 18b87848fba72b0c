// Byte planes: plane p of n elements is byte p of each, the lowest first. Splitting and joining,
// with each element rotated left by one bit before it is split, if asked for.
//
// Plain loops that the compiler vectorises, for AVX2 where the processor has it, and for elements
// of 2 and 4 bytes permutations of AVX-512 VBMI. Pure functions, any thread; nothing is read or
// written outside of n bytes a plane and n elements.
#ifndef DEJA_FORMAT_PLANES_BYTE_PLANES_H_
#define DEJA_FORMAT_PLANES_BYTE_PLANES_H_

#include <array>
#include <cstddef>

namespace deja::format {

inline constexpr size_t kMaxPlanes = 8;

// U: an unsigned integer of 1, 2, 4 or 8 bytes.
template <typename U>
void SplitPlanes(const std::byte* in, size_t elements, bool rotate,
                 const std::array<std::byte*, kMaxPlanes>& planes);
template <typename U>
void JoinPlanes(const std::array<const std::byte*, kMaxPlanes>& planes, size_t elements,
                bool rotated, std::byte* out);

}  // namespace deja::format

#endif  // DEJA_FORMAT_PLANES_BYTE_PLANES_H_
