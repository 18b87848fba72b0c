#include "format/planes/huffman_wide.h"

#include <algorithm>
#include <numeric>

#include "format/planes/intrinsics.h"

namespace deja::format::huffman {

CodeWindow CodeWindow::For(const std::array<uint32_t, kSymbols>& counts) {
  constexpr uint64_t kFew = 1024;  // one in this many
  const uint64_t total = std::accumulate(counts.begin(), counts.begin() + 256, uint64_t{0});
  for (const unsigned size : {64u, 128u}) {
    uint64_t inside = std::accumulate(counts.begin(), counts.begin() + size, uint64_t{0});
    uint64_t most = inside;
    unsigned best = 0;
    for (unsigned first = 1; first + size <= 256; ++first) {
      inside += counts[first + size - 1];
      inside -= counts[first - 1];
      if (inside > most) {
        most = inside;
        best = first;
      }
    }
    if (total - most <= total / kFew) return {static_cast<uint8_t>(best), size};
  }
  return {};
}

#if defined(__x86_64__)

bool HasWideEncoder() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi");
}

namespace {

#define DEJA_WIDE __attribute__((target("avx512f,avx512bw,avx512vbmi,bmi2")))

constexpr size_t kWidth = 64;
constexpr unsigned kMostBits = 56;  // of eight symbols, so that they and 7 bits before fit 64
constexpr uint8_t kOneByOne = 64;   // as a length: more than kMostBits

// A byte for each of the window's, a register for 64 of them.
struct Table {
  __m512i part[4];
};
struct Tables {
  Table length;
  Table low;   // bits of the code
  Table high;  // the others
};

template <unsigned kSize>
DEJA_WIDE inline __m512i LookUp(const Table& table, __m512i index) {
  if constexpr (kSize == 64) return _mm512_permutexvar_epi8(index, table.part[0]);
  const __m512i lower = _mm512_permutex2var_epi8(table.part[0], index, table.part[1]);
  if constexpr (kSize == 128) return lower;
  const __m512i upper = _mm512_permutex2var_epi8(table.part[2], index, table.part[3]);
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), lower, upper);
}

DEJA_WIDE Tables MakeTables(const ByteCodes& codes, CodeWindow window) {
  alignas(64) std::array<uint8_t, 256> length;
  alignas(64) std::array<uint8_t, 256> low{};
  alignas(64) std::array<uint8_t, 256> high{};
  length.fill(kOneByOne);
  for (const uint8_t byte : codes.seen()) {
    const unsigned at = byte - unsigned{window.first};
    if (at >= window.size) continue;
    length[at] = static_cast<uint8_t>(codes.length(byte));
    low[at] = static_cast<uint8_t>(codes.code(byte));
    high[at] = static_cast<uint8_t>(codes.code(byte) >> 8);
  }
  Tables tables;
  for (size_t i = 0; i < 4; ++i) {
    tables.length.part[i] = _mm512_load_si512(length.data() + i * kWidth);
    tables.low.part[i] = _mm512_load_si512(low.data() + i * kWidth);
    tables.high.part[i] = _mm512_load_si512(high.data() + i * kWidth);
  }
  return tables;
}

// Eight words, each the bits of eight symbols, and how many these are. What the words of groups
// with more than kMostBits are means nothing.
struct Words {
  alignas(64) std::array<uint64_t, 8> bits;
  alignas(64) std::array<uint64_t, 8> count;
  unsigned too_long;  // a bit for each of these
};

// `a` where `mask` is set, else nothing, and `b`.
DEJA_WIDE inline __m512i AndOr(__m512i a, __m512i mask, __m512i b) {
  return _mm512_ternarylogic_epi64(a, mask, b, 0xea);
}

template <unsigned kSize>
DEJA_WIDE inline void MakeWords(const std::byte* in, const Tables& tables, __m512i first,
                                Words& words) {
  __m512i index = _mm512_sub_epi8(_mm512_loadu_si512(in), first);
  __m512i length = LookUp<kSize>(tables.length, index);
  if constexpr (kSize != 256) {
    const __mmask64 inside =
        _mm512_cmplt_epu8_mask(index, _mm512_set1_epi8(static_cast<char>(kSize)));
    length = _mm512_mask_mov_epi8(_mm512_set1_epi8(kOneByOne), inside, length);
  }
  const __m512i low = LookUp<kSize>(tables.low, index);
  const __m512i high = LookUp<kSize>(tables.high, index);
  const __m512i byte_of_2 = _mm512_set1_epi16(0xff);
  const __m512i byte_of_4 = _mm512_set1_epi32(0xff);
  const __m512i half_of_4 = _mm512_set1_epi32(0xffff);
  const __m512i half_of_8 = _mm512_set1_epi64(0xffffffff);
  // Codes of symbols 0, 2, 4, … and of 1, 3, 5, …, 16 bits each.
  const __m512i even = AndOr(low, byte_of_2, _mm512_slli_epi16(high, 8));
  const __m512i odd =
      AndOr(byte_of_2, _mm512_srli_epi16(low, 8), _mm512_andnot_si512(byte_of_2, high));
  // Pairs in 32 bits: symbols 0 and 1, 4 and 5, …; symbols 2 and 3, 6 and 7, ….
  const __m512i pair0 = AndOr(
      even, half_of_4,
      _mm512_sllv_epi32(_mm512_and_si512(odd, half_of_4), _mm512_and_si512(length, byte_of_4)));
  const __m512i pair2 = _mm512_or_si512(
      _mm512_srli_epi32(even, 16),
      _mm512_sllv_epi32(_mm512_srli_epi32(odd, 16),
                        _mm512_and_si512(_mm512_srli_epi32(length, 16), byte_of_4)));
  // Fours in 64 bits, then eights.
  const __m512i pair_length = _mm512_maddubs_epi16(length, _mm512_set1_epi8(1));
  const __m512i four0 =
      AndOr(pair0, half_of_8,
            _mm512_sllv_epi64(_mm512_and_si512(pair2, half_of_8),
                              _mm512_and_si512(pair_length, _mm512_set1_epi64(0xffff))));
  const __m512i four4 = _mm512_or_si512(
      _mm512_srli_epi64(pair0, 32),
      _mm512_sllv_epi64(
          _mm512_srli_epi64(pair2, 32),
          _mm512_and_si512(_mm512_srli_epi64(pair_length, 32), _mm512_set1_epi64(0xffff))));
  const __m512i four_length = _mm512_madd_epi16(pair_length, _mm512_set1_epi16(1));
  const __m512i eight =
      _mm512_or_si512(four0, _mm512_sllv_epi64(four4, _mm512_and_si512(four_length, half_of_8)));
  const __m512i count = _mm512_sad_epu8(length, _mm512_setzero_si512());
  _mm512_store_si512(words.bits.data(), eight);
  _mm512_store_si512(words.count.data(), count);
  words.too_long = _mm512_cmpgt_epu64_mask(count, _mm512_set1_epi64(kMostBits));
}

template <unsigned kSize>
DEJA_WIDE std::byte* Encode(std::span<const std::byte> in, const ByteCodes& codes,
                            CodeWindow window, std::byte* out) {
  const Tables tables = MakeTables(codes, window);
  const __m512i first = _mm512_set1_epi8(static_cast<char>(window.first));
  BitWriter writer{out};
  Words words;
  size_t at = 0;
  for (; at + kWidth <= in.size(); at += kWidth) {
    MakeWords<kSize>(in.data() + at, tables, first, words);
    for (size_t i = 0; i < 8; ++i) {
      if (words.too_long >> i & 1) [[unlikely]] {
        for (size_t k = 0; k < 8; ++k) codes.AddOne(writer, in[at + 8 * i + k]);
        continue;
      }
      writer.Add(words.bits[i], static_cast<unsigned>(words.count[i]));
      writer.Flush();
    }
  }
  for (; at < in.size(); ++at) codes.AddOne(writer, in[at]);
  return writer.Finish();
}

}  // namespace

std::byte* EncodeWide(std::span<const std::byte> in, const ByteCodes& codes, CodeWindow window,
                      std::byte* out) {
  if (window.size == 64) return Encode<64>(in, codes, window, out);
  if (window.size == 128) return Encode<128>(in, codes, window, out);
  return Encode<256>(in, codes, window, out);
}

#else

bool HasWideEncoder() {
  return false;
}

std::byte* EncodeWide(std::span<const std::byte>, const ByteCodes&, CodeWindow, std::byte* out) {
  return out;
}

#endif

}  // namespace deja::format::huffman
