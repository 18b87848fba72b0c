// Codes are written as planes of bits: for 64 bytes, a word with bit 0 of each code, then one with
// bit 1, …. So vectors need neither shifts nor look-ups. A function that is compiled for each kind
// of vector does a group of 64.
#include "format/planes/packed_plane.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "format/planes/intrinsics.h"

#if defined(__x86_64__)
#define DEJA_FOR_AVX2 __attribute__((target("avx2")))
#define DEJA_FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vbmi2,popcnt")))
#endif

namespace deja::format {
namespace {

constexpr size_t kGroup = 64;  // bytes
constexpr size_t kSamplePieces = 64;

using Codes = std::array<uint64_t, kMostPackedBits>;

size_t GroupsOf(size_t bytes) {
  return (bytes + kGroup - 1) / kGroup;
}
size_t WordBytes(size_t plane_bytes, unsigned bits) {
  return GroupsOf(plane_bytes) * bits * sizeof(uint64_t);
}

// ---- One group, by each kind of vector
//
// Pack gives the words of the codes; those of bytes that have none are all ones. Unpack gives
// first + code of all bytes. Gather and Scatter move the bytes without a code, of which there are
// as many as `mask` has ones; Gather may write to all of `room`.

struct Plain {
  [[gnu::always_inline]] static void Pack(const std::byte* in, PackedRange range, Codes& codes) {
    const unsigned none = (1u << range.bits) - 1;
    codes = {};
    for (size_t i = 0; i < kGroup; ++i) {
      const auto from_first = static_cast<uint8_t>(static_cast<uint8_t>(in[i]) - range.first);
      const uint64_t code = std::min<unsigned>(from_first, none);
      for (unsigned b = 0; b < kMostPackedBits; ++b) codes[b] |= (code >> b & 1) << i;
    }
  }
  [[gnu::always_inline]] static void Unpack(const Codes& codes, PackedRange range, std::byte* out) {
    for (size_t i = 0; i < kGroup; i += 8) {
      uint64_t bytes = 0;
      for (unsigned b = 0; b < range.bits; ++b) {
        // Eight bits, each in a byte of its own.
        const uint64_t spread = (codes[b] >> i & 0xff) * 0x0101010101010101 & 0x8040201008040201;
        bytes |= ((spread + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101) << b;
      }
      for (size_t j = 0; j < 8; ++j)
        out[i + j] = static_cast<std::byte>(range.first + (bytes >> 8 * j & 0xff));
    }
  }
  static void Gather(const std::byte* in, uint64_t mask, std::byte* out, size_t) {
    for (; mask != 0; mask &= mask - 1) *out++ = in[std::countr_zero(mask)];
  }
  static void Scatter(const std::byte* in, uint64_t mask, std::byte* out) {
    for (; mask != 0; mask &= mask - 1) out[std::countr_zero(mask)] = *in++;
  }
};

#if defined(DEJA_FOR_AVX2)
struct Avx2 : Plain {
  DEJA_FOR_AVX2 static void Pack(const std::byte* in, PackedRange range, Codes& codes) {
    const __m256i first = _mm256_set1_epi8(static_cast<char>(range.first));
    const __m256i none = _mm256_set1_epi8(static_cast<char>((1u << range.bits) - 1));
    __m256i code[2];
    for (size_t half = 0; half < 2; ++half) {
      const __m256i bytes =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + half * (kGroup / 2)));
      code[half] = _mm256_min_epu8(_mm256_sub_epi8(bytes, first), none);
    }
    for (unsigned b = 0; b < range.bits; ++b) {
      // The bit to the top of its byte; what comes from the byte below stays below.
      const __m128i up = _mm_cvtsi32_si128(static_cast<int>(7 - b));
      const auto low = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_sll_epi16(code[0], up)));
      const auto high = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_sll_epi16(code[1], up)));
      codes[b] = low | uint64_t{high} << 32;
    }
  }
  DEJA_FOR_AVX2 static void Unpack(const Codes& codes, PackedRange range, std::byte* out) {
    // Byte i / 8 of the word to byte i, and there bit i % 8.
    const __m256i places =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
    for (size_t half = 0; half < 2; ++half) {
      __m256i bytes = _mm256_set1_epi8(static_cast<char>(range.first));
      for (unsigned b = 0; b < range.bits; ++b) {
        const auto word = static_cast<int>(static_cast<uint32_t>(codes[b] >> 32 * half));
        const __m256i spread =
            _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), places), bit);
        const __m256i weight = _mm256_set1_epi8(static_cast<char>(1u << b));
        bytes = _mm256_add_epi8(bytes, _mm256_and_si256(_mm256_cmpeq_epi8(spread, bit), weight));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + half * (kGroup / 2)), bytes);
    }
  }
};

struct Avx512 {
  DEJA_FOR_AVX512 static void Pack(const std::byte* in, PackedRange range, Codes& codes) {
    const __m512i first = _mm512_set1_epi8(static_cast<char>(range.first));
    const __m512i none = _mm512_set1_epi8(static_cast<char>((1u << range.bits) - 1));
    const __m512i code = _mm512_min_epu8(_mm512_sub_epi8(_mm512_loadu_si512(in), first), none);
    for (unsigned b = 0; b < range.bits; ++b)
      codes[b] = _mm512_test_epi8_mask(code, _mm512_set1_epi8(static_cast<char>(1u << b)));
  }
  DEJA_FOR_AVX512 static void Unpack(const Codes& codes, PackedRange range, std::byte* out) {
    __m512i bytes = _mm512_set1_epi8(static_cast<char>(range.first));
    for (unsigned b = 0; b < range.bits; ++b)
      bytes = _mm512_mask_add_epi8(bytes, codes[b], bytes,
                                   _mm512_set1_epi8(static_cast<char>(1u << b)));
    _mm512_storeu_si512(out, bytes);
  }
  DEJA_FOR_AVX512 static void Gather(const std::byte* in, uint64_t mask, std::byte* out,
                                     size_t room) {
    const __m512i bytes = _mm512_loadu_si512(in);
    // To store a part of a vector takes several times as long.
    if (room >= kGroup)
      _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(mask, bytes));
    else
      _mm512_mask_compressstoreu_epi8(out, mask, bytes);
  }
  DEJA_FOR_AVX512 static void Scatter(const std::byte* in, uint64_t mask, std::byte* out) {
    _mm512_storeu_si512(out, _mm512_mask_expandloadu_epi8(_mm512_loadu_si512(out), mask, in));
  }
};
#endif

// ---- Planes

// The number of bits, the words, and the bytes without a code. 0: there is no room.
template <typename Vectors>
[[gnu::always_inline]] inline size_t Pack(std::span<const std::byte> plane, PackedRange range,
                                          std::span<std::byte> out) {
  out[0] = static_cast<std::byte>(range.bits);
  std::byte* word = out.data() + 1;
  std::byte* other = word + WordBytes(plane.size(), range.bits);
  for (size_t at = 0; at < plane.size(); at += kGroup) {
    const std::byte* in = plane.data() + at;
    std::array<std::byte, kGroup> last;
    if (plane.size() - at < kGroup) {
      last.fill(static_cast<std::byte>(range.first));
      std::copy(in, plane.data() + plane.size(), last.begin());
      in = last.data();
    }
    Codes codes;
    Vectors::Pack(in, range, codes);
    uint64_t none = ~uint64_t{0};
    for (unsigned b = 0; b < range.bits; ++b) {
      none &= codes[b];
      std::memcpy(word, &codes[b], sizeof codes[b]);
      word += sizeof codes[b];
    }
    if (none == 0) continue;
    const auto others = static_cast<size_t>(std::popcount(none));
    const auto room = static_cast<size_t>(out.data() + out.size() - other);
    if (others > room) return 0;
    Vectors::Gather(in, none, other, room);
    other += others;
  }
  return static_cast<size_t>(other - out.data());
}

Status Bad(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("packed plane: ") + what);
}

// Null, or what is wrong.
template <typename Vectors>
[[gnu::always_inline]] inline const char* Unpack(std::span<const std::byte> in, PackedRange range,
                                                 std::span<std::byte> plane) {
  const std::byte* word = in.data();
  const std::byte* other = in.data() + WordBytes(plane.size(), range.bits);
  const std::byte* const end = in.data() + in.size();
  for (size_t at = 0; at < plane.size(); at += kGroup) {
    const size_t size = std::min(kGroup, plane.size() - at);
    Codes codes;
    uint64_t none = ~uint64_t{0};
    uint64_t any = 0;
    for (unsigned b = 0; b < range.bits; ++b) {
      std::memcpy(&codes[b], word, sizeof codes[b]);
      word += sizeof codes[b];
      none &= codes[b];
      any |= codes[b];
    }
    const auto others = static_cast<size_t>(std::popcount(none));
    if (others > static_cast<size_t>(end - other)) return "it ends too early";
    std::array<std::byte, kGroup> last;
    std::byte* out = size == kGroup ? plane.data() + at : last.data();
    Vectors::Unpack(codes, range, out);
    if (none != 0) Vectors::Scatter(other, none, out);
    other += others;
    if (size == kGroup) continue;
    if (any >> size != 0) return "there are bits after its end";
    std::copy_n(last.begin(), size, plane.data() + at);
  }
  return other == end ? nullptr : "it is longer than its bytes";
}

#if defined(DEJA_FOR_AVX2)
DEJA_FOR_AVX2 size_t PackAvx2(std::span<const std::byte> plane, PackedRange range,
                              std::span<std::byte> out) {
  return Pack<Avx2>(plane, range, out);
}
DEJA_FOR_AVX2 const char* UnpackAvx2(std::span<const std::byte> in, PackedRange range,
                                     std::span<std::byte> plane) {
  return Unpack<Avx2>(in, range, plane);
}
DEJA_FOR_AVX512 size_t PackAvx512(std::span<const std::byte> plane, PackedRange range,
                                  std::span<std::byte> out) {
  // What floats have mostly, with a number of bits that the compiler knows.
  return range.bits == 3 ? Pack<Avx512>(plane, {range.first, 3}, out)
                         : Pack<Avx512>(plane, range, out);
}
DEJA_FOR_AVX512 const char* UnpackAvx512(std::span<const std::byte> in, PackedRange range,
                                         std::span<std::byte> plane) {
  return range.bits == 3 ? Unpack<Avx512>(in, {range.first, 3}, plane)
                         : Unpack<Avx512>(in, range, plane);
}
#endif

}  // namespace

PackedVectors BestPackedVectors() {
#if defined(DEJA_FOR_AVX2)
  static const PackedVectors best = [] {
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2"))
      return PackedVectors::kAvx512;
    return __builtin_cpu_supports("avx2") ? PackedVectors::kAvx2 : PackedVectors::kNone;
  }();
  return best;
#else
  return PackedVectors::kNone;
#endif
}

PackedRange PackedRange::For(std::span<const std::byte> plane) {
  std::array<uint32_t, 256> counts{};
  uint32_t counted = 0;
  // Some of all parts: the beginning need not be like the rest.
  const size_t stride = std::max(kGroup, plane.size() / kSamplePieces);
  for (size_t at = 0; at < plane.size(); at += stride) {
    for (const std::byte byte : plane.subspan(at, std::min(kGroup, plane.size() - at))) {
      ++counts[static_cast<uint8_t>(byte)];
      ++counted;
    }
  }
  PackedRange best;
  uint64_t best_bits = uint64_t{8} * counted;
  for (unsigned bits = 1; bits <= kMostPackedBits; ++bits) {
    const unsigned width = (1u << bits) - 1;
    uint64_t inside = 0;
    for (unsigned byte = 0; byte < width; ++byte) inside += counts[byte];
    for (unsigned first = 0;; ++first) {
      const uint64_t needs = uint64_t{bits} * counted + 8 * (counted - inside);
      if (needs < best_bits) {
        best_bits = needs;
        best = {static_cast<uint8_t>(first), bits};
      }
      if (first + width > 255) break;
      inside += counts[first + width];
      inside -= counts[first];
    }
  }
  return best;
}

size_t PackPlane(std::span<const std::byte> plane, PackedRange range, std::span<std::byte> out,
                 PackedVectors vectors) {
  if (range.bits == 0 || range.bits > kMostPackedBits ||
      out.size() < 1 + WordBytes(plane.size(), range.bits))
    return 0;
  switch (vectors) {
#if defined(DEJA_FOR_AVX2)
    case PackedVectors::kAvx512:
      return PackAvx512(plane, range, out);
    case PackedVectors::kAvx2:
      return PackAvx2(plane, range, out);
#endif
    default:
      return Pack<Plain>(plane, range, out);
  }
}

Status UnpackPlane(std::span<const std::byte> in, uint8_t first, std::span<std::byte> plane,
                   PackedVectors vectors) {
  if (in.empty()) return Bad("it is empty");
  const PackedRange range{first, static_cast<uint8_t>(in[0])};
  if (range.bits == 0 || range.bits > kMostPackedBits) return Bad("no such number of bits");
  if (in.size() < 1 + WordBytes(plane.size(), range.bits)) return Bad("it ends too early");
  const std::span<const std::byte> rest = in.subspan(1);
  const char* wrong = nullptr;
  switch (vectors) {
#if defined(DEJA_FOR_AVX2)
    case PackedVectors::kAvx512:
      wrong = UnpackAvx512(rest, range, plane);
      break;
    case PackedVectors::kAvx2:
      wrong = UnpackAvx2(rest, range, plane);
      break;
#endif
    default:
      wrong = Unpack<Plain>(rest, range, plane);
  }
  return wrong == nullptr ? Status() : Bad(wrong);
}

}  // namespace deja::format
