#include "format/tensor/element_difference.h"

#include <cstring>

#include "format/tensor/xor_bytes.h"

namespace deja::format {
namespace {

template <typename U>
constexpr U kTop = static_cast<U>(U{1} << (8 * sizeof(U) - 1));

// All bits, if the top one is set.
template <typename U>
U TopMask(U bits) {
  return static_cast<U>(U{0} - static_cast<U>(bits >> (8 * sizeof(U) - 1)));
}

// The place of a floating point value in their order: negative ones, from the greatest amount on,
// come before positive ones.
template <typename U>
U PlaceOf(U bits) {
  return static_cast<U>(bits ^ (TopMask(bits) | kTop<U>));
}
template <typename U>
U BitsAt(U place) {
  return static_cast<U>(place ^ (static_cast<U>(~TopMask(place)) | kTop<U>));
}

// Small amounts of either sign have few bits, the sign in the lowest.
template <typename U>
U FoldSign(U difference) {
  return static_cast<U>(static_cast<U>(difference << 1) ^ TopMask(difference));
}
template <typename U>
U UnfoldSign(U folded) {
  return static_cast<U>((folded >> 1) ^ static_cast<U>(U{0} - (folded & 1)));
}

// out[i] = combine(a[i], b[i]).
template <typename U, typename Combine>
void ForElements(std::span<const std::byte> a, std::span<const std::byte> b,
                 std::span<std::byte> out, Combine combine) {
  const size_t whole = out.size() / sizeof(U) * sizeof(U);
  for (size_t at = 0; at < whole; at += sizeof(U)) {
    U x;
    U y;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    const U combined = combine(x, y);
    std::memcpy(out.data() + at, &combined, sizeof combined);
  }
  XorBytes(a.data() + whole, b.data() + whole, out.size() - whole, out.data() + whole);
}

// Calls `with` with a zero of the elements' type; where bytes are XORed, does so and does not.
template <typename With>
void Dispatch(DifferenceKind kind, std::span<const std::byte> a, std::span<const std::byte> b,
              std::span<std::byte> out, With with) {
  if (kind.codec == TensorCodec::kElementDifference) {
    if (kind.element_size == 2) return with(uint16_t{0});
    if (kind.element_size == 4) return with(uint32_t{0});
    if (kind.element_size == 8) return with(uint64_t{0});
    if (kind.element_size == 1) return with(uint8_t{0});
  }
  XorBytes(a.data(), b.data(), out.size(), out.data());
}

}  // namespace

void MakeDifference(DifferenceKind kind, std::span<const std::byte> bytes,
                    std::span<const std::byte> base, std::span<std::byte> out) {
  Dispatch(kind, bytes, base, out, [&](auto zero) {
    using U = decltype(zero);
    ForElements<U>(bytes, base, out, [](U now, U before) {
      return FoldSign(static_cast<U>(PlaceOf(now) - PlaceOf(before)));
    });
  });
}

void JoinDifferences(DifferenceKind kind, std::span<const std::byte> earlier,
                     std::span<std::byte> sum) {
  Dispatch(kind, earlier, sum, sum, [&](auto zero) {
    using U = decltype(zero);
    ForElements<U>(earlier, sum, sum, [](U first, U second) {
      return FoldSign(static_cast<U>(UnfoldSign(first) + UnfoldSign(second)));
    });
  });
}

void ApplyDifference(DifferenceKind kind, std::span<const std::byte> base,
                     std::span<std::byte> out) {
  Dispatch(kind, base, out, out, [&](auto zero) {
    using U = decltype(zero);
    ForElements<U>(base, out, out, [](U before, U difference) {
      return BitsAt(static_cast<U>(PlaceOf(before) + UnfoldSign(difference)));
    });
  });
}

}  // namespace deja::format
