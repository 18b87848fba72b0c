#include "format/planes/byte_planes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "format/planes/intrinsics.h"

#if defined(__x86_64__)
#define DEJA_FOR_AVX2 __attribute__((target("avx2")))
#define DEJA_FOR_VBMI __attribute__((target("avx512f,avx512bw,avx512vbmi")))
#endif

namespace deja::format {
namespace {

template <typename U>
constexpr size_t kBlock = 4096 / sizeof(U);  // stays in the first-level cache for all planes

template <typename U, bool kRotate>
[[gnu::always_inline]] inline void Split(const std::byte* in, size_t elements,
                                         const std::array<std::byte*, kMaxPlanes>& planes) {
  U block[kBlock<U>];
  for (size_t done = 0; done < elements; done += kBlock<U>) {
    const size_t size = std::min(kBlock<U>, elements - done);
    std::memcpy(block, in + done * sizeof(U), size * sizeof(U));
    if constexpr (kRotate) {
      for (size_t i = 0; i < size; ++i)
        block[i] = static_cast<U>(block[i] << 1 | block[i] >> (8 * sizeof(U) - 1));
    }
    for (size_t p = 0; p < sizeof(U); ++p) {
      auto* out = reinterpret_cast<uint8_t*>(planes[p] + done);
      const auto shift = static_cast<unsigned>(8 * p);
      for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(block[i] >> shift);
    }
  }
}

template <typename U, bool kRotate>
[[gnu::always_inline]] inline void Join(const std::array<const std::byte*, kMaxPlanes>& planes,
                                        size_t elements, std::byte* out) {
  U block[kBlock<U>];
  for (size_t done = 0; done < elements; done += kBlock<U>) {
    const size_t size = std::min(kBlock<U>, elements - done);
    for (size_t p = 0; p < sizeof(U); ++p) {
      const auto* in = reinterpret_cast<const uint8_t*>(planes[p] + done);
      const auto shift = static_cast<unsigned>(8 * p);
      if (p == 0) {
        for (size_t i = 0; i < size; ++i) block[i] = in[i];
      } else {
        for (size_t i = 0; i < size; ++i)
          block[i] = static_cast<U>(block[i] | static_cast<U>(static_cast<U>(in[i]) << shift));
      }
    }
    if constexpr (kRotate) {
      for (size_t i = 0; i < size; ++i)
        block[i] = static_cast<U>(block[i] >> 1 | block[i] << (8 * sizeof(U) - 1));
    }
    std::memcpy(out + done * sizeof(U), block, size * sizeof(U));
  }
}

#if defined(DEJA_FOR_AVX2)
template <typename U, bool kRotate>
DEJA_FOR_AVX2 void SplitAvx2(const std::byte* in, size_t elements,
                             const std::array<std::byte*, kMaxPlanes>& planes) {
  Split<U, kRotate>(in, elements, planes);
}
template <typename U, bool kRotate>
DEJA_FOR_AVX2 void JoinAvx2(const std::array<const std::byte*, kMaxPlanes>& planes, size_t elements,
                            std::byte* out) {
  Join<U, kRotate>(planes, elements, out);
}

bool HasAvx2() {
  return __builtin_cpu_supports("avx2") != 0;
}
bool HasVbmi() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi");
}

// Where a byte of a vector, or of two side by side, comes from.
struct alignas(64) Places {
  uint8_t of[64];
};
template <typename From>
constexpr Places MakePlaces(From from) {
  Places places{};
  for (size_t i = 0; i < 64; ++i) places.of[i] = static_cast<uint8_t>(from(i));
  return places;
}

// By one bit, of elements of 2 or 4 bytes.
template <typename U>
DEJA_FOR_VBMI inline __m512i RotateLeft(__m512i value) {
  if constexpr (sizeof(U) == 4) return _mm512_rol_epi32(value, 1);
  return _mm512_or_si512(_mm512_slli_epi16(value, 1), _mm512_srli_epi16(value, 15));
}
template <typename U>
DEJA_FOR_VBMI inline __m512i RotateRight(__m512i value) {
  if constexpr (sizeof(U) == 4) return _mm512_ror_epi32(value, 1);
  return _mm512_or_si512(_mm512_srli_epi16(value, 1), _mm512_slli_epi16(value, 15));
}

// The planes of as many vectors as an element has bytes, a vector each; how many elements.
template <typename U, bool kRotate>
DEJA_FOR_VBMI size_t SplitVectors(const std::byte* in, size_t elements,
                                  const std::array<std::byte*, kMaxPlanes>& planes) {
  constexpr size_t kBytes = sizeof(U);
  // The bytes 0 of two vectors' elements, then the bytes 1; and the others.
  static constexpr Places kLow =
      MakePlaces([](size_t i) { return i % (128 / kBytes) * kBytes + i / (128 / kBytes); });
  static constexpr Places kHigh = MakePlaces(
      [](size_t i) { return i % (128 / kBytes) * kBytes + i / (128 / kBytes) + kBytes / 2; });
  const __m512i low = _mm512_load_si512(kLow.of);
  const __m512i high = _mm512_load_si512(kHigh.of);
  size_t done = 0;
  for (; done + 64 <= elements; done += 64) {
    __m512i v[kBytes];
    for (size_t i = 0; i < kBytes; ++i) {
      v[i] = _mm512_loadu_si512(in + done * kBytes + i * 64);
      if constexpr (kRotate) v[i] = RotateLeft<U>(v[i]);
    }
    if constexpr (kBytes == 2) {
      _mm512_storeu_si512(planes[0] + done, _mm512_permutex2var_epi8(v[0], low, v[1]));
      _mm512_storeu_si512(planes[1] + done, _mm512_permutex2var_epi8(v[0], high, v[1]));
    } else {
      for (size_t half = 0; half < 2; ++half) {
        const __m512i which = half == 0 ? low : high;
        const __m512i front = _mm512_permutex2var_epi8(v[0], which, v[1]);
        const __m512i back = _mm512_permutex2var_epi8(v[2], which, v[3]);
        _mm512_storeu_si512(planes[2 * half] + done, _mm512_shuffle_i64x2(front, back, 0x44));
        _mm512_storeu_si512(planes[2 * half + 1] + done, _mm512_shuffle_i64x2(front, back, 0xee));
      }
    }
  }
  return done;
}

template <typename U, bool kRotate>
DEJA_FOR_VBMI size_t JoinVectors(const std::array<const std::byte*, kMaxPlanes>& planes,
                                 size_t elements, std::byte* out) {
  constexpr size_t kBytes = sizeof(U);
  // Bytes of two vectors in turns, of their first half or their second.
  static constexpr Places kFront = MakePlaces([](size_t i) { return i / 2 + i % 2 * 64; });
  static constexpr Places kBack = MakePlaces([](size_t i) { return i / 2 + 32 + i % 2 * 64; });
  // The same with pairs of bytes.
  static constexpr Places kPairsFront =
      MakePlaces([](size_t i) { return i / 4 * 2 + i % 2 + i / 2 % 2 * 64; });
  static constexpr Places kPairsBack =
      MakePlaces([](size_t i) { return i / 4 * 2 + i % 2 + 32 + i / 2 % 2 * 64; });
  const __m512i front = _mm512_load_si512(kFront.of);
  const __m512i back = _mm512_load_si512(kBack.of);
  const __m512i pairs_front = _mm512_load_si512(kPairsFront.of);
  const __m512i pairs_back = _mm512_load_si512(kPairsBack.of);
  size_t done = 0;
  for (; done + 64 <= elements; done += 64) {
    __m512i p[kBytes];
    for (size_t i = 0; i < kBytes; ++i) p[i] = _mm512_loadu_si512(planes[i] + done);
    __m512i v[kBytes];
    v[0] = _mm512_permutex2var_epi8(p[0], front, p[1]);
    v[1] = _mm512_permutex2var_epi8(p[0], back, p[1]);
    if constexpr (kBytes == 4) {
      const __m512i upper0 = _mm512_permutex2var_epi8(p[2], front, p[3]);
      const __m512i upper1 = _mm512_permutex2var_epi8(p[2], back, p[3]);
      v[3] = _mm512_permutex2var_epi8(v[1], pairs_back, upper1);
      v[2] = _mm512_permutex2var_epi8(v[1], pairs_front, upper1);
      v[1] = _mm512_permutex2var_epi8(v[0], pairs_back, upper0);
      v[0] = _mm512_permutex2var_epi8(v[0], pairs_front, upper0);
    }
    for (size_t i = 0; i < kBytes; ++i) {
      if constexpr (kRotate) v[i] = RotateRight<U>(v[i]);
      _mm512_storeu_si512(out + done * kBytes + i * 64, v[i]);
    }
  }
  return done;
}

// What is left after the vectors.
template <typename U, bool kRotate>
void SplitVbmi(const std::byte* in, size_t elements,
               const std::array<std::byte*, kMaxPlanes>& planes) {
  const size_t done = SplitVectors<U, kRotate>(in, elements, planes);
  std::array<std::byte*, kMaxPlanes> rest{};
  for (size_t p = 0; p < sizeof(U); ++p) rest[p] = planes[p] + done;
  Split<U, kRotate>(in + done * sizeof(U), elements - done, rest);
}
template <typename U, bool kRotate>
void JoinVbmi(const std::array<const std::byte*, kMaxPlanes>& planes, size_t elements,
              std::byte* out) {
  const size_t done = JoinVectors<U, kRotate>(planes, elements, out);
  std::array<const std::byte*, kMaxPlanes> rest{};
  for (size_t p = 0; p < sizeof(U); ++p) rest[p] = planes[p] + done;
  Join<U, kRotate>(rest, elements - done, out + done * sizeof(U));
}
#endif

}  // namespace

template <typename U>
void SplitPlanes(const std::byte* in, size_t elements, bool rotate,
                 const std::array<std::byte*, kMaxPlanes>& planes) {
#if defined(DEJA_FOR_AVX2)
  if constexpr (sizeof(U) == 2 || sizeof(U) == 4) {
    if (HasVbmi())
      return rotate ? SplitVbmi<U, true>(in, elements, planes)
                    : SplitVbmi<U, false>(in, elements, planes);
  }
  if (HasAvx2())
    return rotate ? SplitAvx2<U, true>(in, elements, planes)
                  : SplitAvx2<U, false>(in, elements, planes);
#endif
  if (rotate) return Split<U, true>(in, elements, planes);
  Split<U, false>(in, elements, planes);
}

template <typename U>
void JoinPlanes(const std::array<const std::byte*, kMaxPlanes>& planes, size_t elements,
                bool rotated, std::byte* out) {
#if defined(DEJA_FOR_AVX2)
  if constexpr (sizeof(U) == 2 || sizeof(U) == 4) {
    if (HasVbmi())
      return rotated ? JoinVbmi<U, true>(planes, elements, out)
                     : JoinVbmi<U, false>(planes, elements, out);
  }
  if (HasAvx2())
    return rotated ? JoinAvx2<U, true>(planes, elements, out)
                   : JoinAvx2<U, false>(planes, elements, out);
#endif
  if (rotated) return Join<U, true>(planes, elements, out);
  Join<U, false>(planes, elements, out);
}

template void SplitPlanes<uint8_t>(const std::byte*, size_t, bool,
                                   const std::array<std::byte*, kMaxPlanes>&);
template void JoinPlanes<uint8_t>(const std::array<const std::byte*, kMaxPlanes>&, size_t, bool,
                                  std::byte*);
template void SplitPlanes<uint16_t>(const std::byte*, size_t, bool,
                                    const std::array<std::byte*, kMaxPlanes>&);
template void SplitPlanes<uint32_t>(const std::byte*, size_t, bool,
                                    const std::array<std::byte*, kMaxPlanes>&);
template void SplitPlanes<uint64_t>(const std::byte*, size_t, bool,
                                    const std::array<std::byte*, kMaxPlanes>&);
template void JoinPlanes<uint16_t>(const std::array<const std::byte*, kMaxPlanes>&, size_t, bool,
                                   std::byte*);
template void JoinPlanes<uint32_t>(const std::array<const std::byte*, kMaxPlanes>&, size_t, bool,
                                   std::byte*);
template void JoinPlanes<uint64_t>(const std::array<const std::byte*, kMaxPlanes>&, size_t, bool,
                                   std::byte*);

}  // namespace deja::format
