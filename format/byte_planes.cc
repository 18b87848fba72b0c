#include "format/byte_planes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#define DEJA_FOR_AVX2 __attribute__((target("avx2")))
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
#endif

}  // namespace

template <typename U>
void SplitPlanes(const std::byte* in, size_t elements, bool rotate,
                 const std::array<std::byte*, kMaxPlanes>& planes) {
#if defined(DEJA_FOR_AVX2)
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
