#include "format/planes/nonzero_elements.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "format/planes/intrinsics.h"

#if defined(__x86_64__)
#define DEJA_FOR_VBMI2 __attribute__((target("avx512f,avx512bw,avx512vbmi2")))
#endif

namespace deja::format {
namespace {

template <typename U>
U LoadAt(const std::byte* base, size_t element) {
  U value;
  std::memcpy(&value, base + element * sizeof(U), sizeof value);
  return value;
}
template <typename U>
void StoreAt(std::byte* base, size_t element, U value) {
  std::memcpy(base + element * sizeof(U), &value, sizeof value);
}

// `begin` is a multiple of 8; `out` has what is before.
template <typename U>
size_t GatherFrom(size_t begin, const std::byte* in, size_t elements, std::byte* bitmap,
                  std::byte* out, size_t count) {
  for (size_t at = begin; at < elements; at += 8) {
    unsigned bits = 0;
    for (size_t i = 0; i < std::min<size_t>(8, elements - at); ++i) {
      const U value = LoadAt<U>(in, at + i);
      const unsigned here = value != 0 ? 1 : 0;
      StoreAt(out, count, value);
      count += here;
      bits |= here << i;
    }
    bitmap[at / 8] = static_cast<std::byte>(bits);
  }
  return count;
}

template <typename U>
void ScatterFrom(size_t begin, const std::byte* in, const std::byte* bitmap, size_t elements,
                 std::byte* out) {
  for (size_t at = begin; at < elements; at += 8) {
    const auto bits = static_cast<unsigned>(bitmap[at / 8]);
    for (size_t i = 0; i < std::min<size_t>(8, elements - at); ++i) {
      const unsigned here = bits >> i & 1;
      StoreAt(out, at + i, static_cast<U>(here != 0 ? LoadAt<U>(in, 0) : 0));
      in += here * sizeof(U);
    }
  }
}

#if defined(DEJA_FOR_VBMI2)

bool HasVbmi2() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2");
}

template <typename U>
constexpr size_t kLanes = 64 / sizeof(U);

template <typename U>
DEJA_FOR_VBMI2 inline uint64_t NonzeroLanes(__m512i value) {
  if constexpr (sizeof(U) == 1) return _mm512_test_epi8_mask(value, value);
  if constexpr (sizeof(U) == 2) return _mm512_test_epi16_mask(value, value);
  if constexpr (sizeof(U) == 4) return _mm512_test_epi32_mask(value, value);
  return _mm512_test_epi64_mask(value, value);
}

template <typename U>
DEJA_FOR_VBMI2 inline __m512i Compress(uint64_t mask, __m512i value) {
  if constexpr (sizeof(U) == 1) return _mm512_maskz_compress_epi8(mask, value);
  if constexpr (sizeof(U) == 2)
    return _mm512_maskz_compress_epi16(static_cast<__mmask32>(mask), value);
  if constexpr (sizeof(U) == 4)
    return _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), value);
  return _mm512_maskz_compress_epi64(static_cast<__mmask8>(mask), value);
}

template <typename U>
DEJA_FOR_VBMI2 inline __m512i Expand(uint64_t mask, __m512i value) {
  if constexpr (sizeof(U) == 1) return _mm512_maskz_expand_epi8(mask, value);
  if constexpr (sizeof(U) == 2)
    return _mm512_maskz_expand_epi16(static_cast<__mmask32>(mask), value);
  if constexpr (sizeof(U) == 4)
    return _mm512_maskz_expand_epi32(static_cast<__mmask16>(mask), value);
  return _mm512_maskz_expand_epi64(static_cast<__mmask8>(mask), value);
}

template <typename U>
DEJA_FOR_VBMI2 size_t GatherWide(const std::byte* in, size_t elements, std::byte* bitmap,
                                 std::byte* out) {
  size_t count = 0;
  size_t at = 0;
  for (; at + kLanes<U> <= elements; at += kLanes<U>) {
    const __m512i value = _mm512_loadu_si512(in + at * sizeof(U));
    const uint64_t mask = NonzeroLanes<U>(value);
    std::memcpy(bitmap + at / 8, &mask, kLanes<U> / 8);
    _mm512_storeu_si512(out + count * sizeof(U), Compress<U>(mask, value));
    count += static_cast<size_t>(std::popcount(mask));
  }
  return GatherFrom<U>(at, in, elements, bitmap, out, count);
}

template <typename U>
DEJA_FOR_VBMI2 void ScatterWide(const std::byte* in, const std::byte* bitmap, size_t elements,
                                std::byte* out) {
  size_t at = 0;
  for (; at + kLanes<U> <= elements; at += kLanes<U>) {
    uint64_t mask = 0;
    std::memcpy(&mask, bitmap + at / 8, kLanes<U> / 8);
    _mm512_storeu_si512(out + at * sizeof(U), Expand<U>(mask, _mm512_loadu_si512(in)));
    in += static_cast<size_t>(std::popcount(mask)) * sizeof(U);
  }
  ScatterFrom<U>(at, in, bitmap, elements, out);
}

#endif

}  // namespace

template <typename U>
size_t GatherNonzero(const std::byte* in, size_t elements, std::byte* bitmap, std::byte* out) {
#if defined(DEJA_FOR_VBMI2)
  if (HasVbmi2()) return GatherWide<U>(in, elements, bitmap, out);
#endif
  return GatherFrom<U>(0, in, elements, bitmap, out, 0);
}

template <typename U>
void ScatterNonzero(const std::byte* in, const std::byte* bitmap, size_t elements, std::byte* out) {
#if defined(DEJA_FOR_VBMI2)
  if (HasVbmi2()) return ScatterWide<U>(in, bitmap, elements, out);
#endif
  ScatterFrom<U>(0, in, bitmap, elements, out);
}

size_t CountNonzero(std::span<const std::byte> bitmap) {
  size_t count = 0;
  size_t at = 0;
  for (; at + 8 <= bitmap.size(); at += 8)
    count += static_cast<size_t>(std::popcount(LoadAt<uint64_t>(bitmap.data() + at, 0)));
  for (; at < bitmap.size(); ++at)
    count += static_cast<size_t>(std::popcount(static_cast<uint8_t>(bitmap[at])));
  return count;
}

template size_t GatherNonzero<uint8_t>(const std::byte*, size_t, std::byte*, std::byte*);
template size_t GatherNonzero<uint16_t>(const std::byte*, size_t, std::byte*, std::byte*);
template size_t GatherNonzero<uint32_t>(const std::byte*, size_t, std::byte*, std::byte*);
template size_t GatherNonzero<uint64_t>(const std::byte*, size_t, std::byte*, std::byte*);
template void ScatterNonzero<uint8_t>(const std::byte*, const std::byte*, size_t, std::byte*);
template void ScatterNonzero<uint16_t>(const std::byte*, const std::byte*, size_t, std::byte*);
template void ScatterNonzero<uint32_t>(const std::byte*, const std::byte*, size_t, std::byte*);
template void ScatterNonzero<uint64_t>(const std::byte*, const std::byte*, size_t, std::byte*);

}  // namespace deja::format
