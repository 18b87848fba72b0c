// The loops themselves; included by digest_baseline.cc, digest_avx2.cc and digest_avx512.cc and by
// nothing else, which name their table DEJA_KERNELS. Everything is in an unnamed namespace, so that
// the builds of one function never meet.
//
// Order of summation (the contract of digest.h): element i is added to lane i mod 16, in order of
// i; then lane j gets lane j+8 added for j < 8, lane j+4 for j < 4, j+2 for j < 2, and 1 to 0.
// Elements that are not finite add +0. Every product and sum is one IEEE double operation (no
// contraction).
#ifndef DEJA_DIGEST_DIGEST_LOOPS_H_
#define DEJA_DIGEST_DIGEST_LOOPS_H_

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "digest/digest_kernels.h"

namespace deja::digest {
namespace {

// GCC and clang lower these to whatever registers the target has.
using U8x8 = uint8_t __attribute__((vector_size(8)));
using U16x8 = uint16_t __attribute__((vector_size(16)));
using U32x8 = uint32_t __attribute__((vector_size(32)));
using I32x8 = int32_t __attribute__((vector_size(32)));
using I32x4 = int32_t __attribute__((vector_size(16)));
using F32x8 = float __attribute__((vector_size(32)));
using F32x4 = float __attribute__((vector_size(16)));
using F64x4 = double __attribute__((vector_size(32)));
using I64x4 = int64_t __attribute__((vector_size(32)));
using U64x4 = uint64_t __attribute__((vector_size(32)));

#define DEJA_INLINE inline __attribute__((always_inline))

void Hash(const void* data, size_t bytes, uint8_t* out16) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
  memcpy(out16, canonical.digest, 16);
}

static_assert(sizeof(XXH3_state_t) <= kHashState);

void HashBegin(void* state) {
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state));
}

#if defined(__AVX512F__)
// XXH3_128bits_update keeps the accumulator in memory between stripes, which costs a third of it
// where one register holds all of it.
DEJA_INLINE void Stripe(uint64_t* acc, const uint8_t* stripe, size_t number) {
  XXH3_accumulate_512(acc, stripe, XXH3_kSecret + number * XXH_SECRET_CONSUME_RATE);
}

void HashStripes(XXH3_state_t& to, const uint8_t* p, size_t stripes) {
  constexpr size_t kBlock = 16;
  static_assert(kBlock == (XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN) / XXH_SECRET_CONSUME_RATE);
  alignas(64) uint64_t acc[8];
  memcpy(acc, to.acc, sizeof acc);
  size_t number = to.nbStripesSoFar;
  while (stripes != 0) {
    size_t count = kBlock - number;
    if (count > stripes) count = stripes;
    if (count == kBlock) {
#pragma GCC unroll 16
      for (size_t i = 0; i < kBlock; ++i) Stripe(acc, p + i * XXH_STRIPE_LEN, i);
    } else {
      for (size_t i = 0; i < count; ++i) Stripe(acc, p + i * XXH_STRIPE_LEN, number + i);
    }
    p += count * XXH_STRIPE_LEN;
    stripes -= count;
    number += count;
    if (number != kBlock) break;
    XXH3_scrambleAcc(acc, XXH3_kSecret + XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN);
    number = 0;
  }
  memcpy(to.acc, acc, sizeof acc);
  to.nbStripesSoFar = number;
}

// As XXH3_128bits_update: the last 1 to 256 bytes stay in the buffer. The stripe before them stays
// at its end, since the last stripe of all may begin there.
void HashAdd(void* into, const void* data, size_t bytes) {
  auto& state = *static_cast<XXH3_state_t*>(into);
  const auto* p = static_cast<const uint8_t*>(data);
  const size_t room = sizeof state.buffer - state.bufferedSize;
  if (bytes <= room) {
    XXH3_128bits_update(&state, data, bytes);
    return;
  }
  state.totalLen += bytes;
  if (state.bufferedSize != 0) {
    memcpy(state.buffer + state.bufferedSize, p, room);
    p += room;
    bytes -= room;
    HashStripes(state, state.buffer, sizeof state.buffer / XXH_STRIPE_LEN);
  }
  if (bytes > sizeof state.buffer) {
    const size_t stripes = (bytes - 1) / XXH_STRIPE_LEN;
    HashStripes(state, p, stripes);
    p += stripes * XXH_STRIPE_LEN;
    bytes -= stripes * XXH_STRIPE_LEN;
    memcpy(state.buffer + sizeof state.buffer - XXH_STRIPE_LEN, p - XXH_STRIPE_LEN, XXH_STRIPE_LEN);
  }
  memcpy(state.buffer, p, bytes);
  state.bufferedSize = static_cast<XXH32_hash_t>(bytes);
}
#else
void HashAdd(void* state, const void* data, size_t bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
}
#endif

void HashEnd(const void* state, uint8_t* out16) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical,
                           XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state)));
  memcpy(out16, canonical.digest, 16);
}

constexpr size_t kLanes = 16;
constexpr size_t kChunk = 4096;  // elements between two looks at whether all were finite

template <typename V>
DEJA_INLINE V LoadVector(const uint8_t* p) {
  V v;
  memcpy(&v, p, sizeof v);
  return v;
}

// Eight narrow integers as 32-bit ones. (Compilers take __builtin_convertvector apart here.)
#if defined(__AVX2__)
DEJA_INLINE U32x8 WidenUnsigned(U16x8 v) {
  return (U32x8)_mm256_cvtepu16_epi32((__m128i)v);
}
DEJA_INLINE U32x8 Widen8(const uint8_t* p) {
  return (U32x8)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
}
#else
DEJA_INLINE U32x8 WidenUnsigned(U16x8 v) {
  U16x8 zero = {};
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return (U32x8)__builtin_shufflevector(v, zero, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7,
                                        15);
#else
  return (U32x8)__builtin_shufflevector(zero, v, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7,
                                        15);
#endif
}
DEJA_INLINE U32x8 Widen8(const uint8_t* p) {
  U8x8 v = LoadVector<U8x8>(p);
  U8x8 zero = {};
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return WidenUnsigned((U16x8)__builtin_shufflevector(v, zero, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5,
                                                      13, 6, 14, 7, 15));
#else
  return WidenUnsigned((U16x8)__builtin_shufflevector(zero, v, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5,
                                                      13, 6, 14, 7, 15));
#endif
}
#endif

// What is common to the types whose elements become lanes of 32-bit floats.
struct InFloat {
  using Vec = F32x8;
  static constexpr size_t kWidth = 8;
  static constexpr bool kHasNonFinite = true;
  static constexpr float kLowest = -__builtin_inff();
  static constexpr float kHighest = __builtin_inff();
  static DEJA_INLINE F64x4 Doubles(Vec v, int half) {
    F32x4 h = half ? __builtin_shufflevector(v, v, 4, 5, 6, 7)
                   : __builtin_shufflevector(v, v, 0, 1, 2, 3);
    return __builtin_convertvector(h, F64x4);
  }
  static DEJA_INLINE I32x8 Magnitude(Vec v) { return (I32x8)v & 0x7fffffff; }
  static DEJA_INLINE I32x8 IsFinite(Vec v) { return Magnitude(v) < 0x7f800000; }
  static DEJA_INLINE I32x8 IsNan(Vec v) { return Magnitude(v) > 0x7f800000; }
};

struct Float32 : InFloat {
  static constexpr size_t kBytes = 4;
  static DEJA_INLINE Vec Load(const uint8_t* p) { return LoadVector<F32x8>(p); }
};

struct BFloat16 : InFloat {
  static constexpr size_t kBytes = 2;
  static DEJA_INLINE Vec Load(const uint8_t* p) {
    return (F32x8)(WidenUnsigned(LoadVector<U16x8>(p)) << 16);
  }
};

// A narrow format with a sign bit, `kExponent` exponent bits below it and the usual bias, as
// floats. Its bits are moved to where a float has them and the bias is corrected. A denormal
// becomes a normal number by a subtraction (and not by multiplying a denormal float, which is slow
// on many CPUs). `kHasInfinity`: the largest exponent is for infinities and NaNs.
template <int kExponent, int kMantissa, bool kHasInfinity>
DEJA_INLINE F32x8 FromNarrow(U32x8 bits) {
  constexpr int kSign = kExponent + kMantissa;
  constexpr uint32_t kBias = (1u << (kExponent - 1)) - 1;
  constexpr uint32_t kRebias = (127u - kBias) << 23;
  constexpr uint32_t kExponentMask = ((1u << kExponent) - 1) << 23;
  U32x8 moved = (bits & ((1u << kSign) - 1)) << (23 - kMantissa);
  U32x8 exponent = moved & kExponentMask;
  U32x8 normal = moved + kRebias;
  if constexpr (kHasInfinity) {
    constexpr uint32_t kToLargest = (255u - ((1u << kExponent) - 1) - (127u - kBias)) << 23;
    normal += (U32x8)(exponent == kExponentMask) & kToLargest;
  }
  U32x8 smallest = U32x8{} + (kRebias + (1u << 23));
  U32x8 denormal = (U32x8)((F32x8)(moved + smallest) - (F32x8)smallest);
  U32x8 is_denormal = (U32x8)(exponent == 0);
  U32x8 value = (denormal & is_denormal) | (normal & ~is_denormal);
  return (F32x8)(value | ((bits >> kSign) << 31));
}

struct Float16 : InFloat {
  static constexpr size_t kBytes = 2;
  static DEJA_INLINE Vec Load(const uint8_t* p) {
    return FromNarrow<5, 10, true>(WidenUnsigned(LoadVector<U16x8>(p)));
  }
};

struct Float8E5M2 : InFloat {
  static constexpr size_t kBytes = 1;
  static DEJA_INLINE Vec Load(const uint8_t* p) { return FromNarrow<5, 2, true>(Widen8(p)); }
};

struct Float8E4M3 : InFloat {  // OCP: no infinities; all ones is the only NaN
  static constexpr size_t kBytes = 1;
  static DEJA_INLINE Vec Load(const uint8_t* p) {
    U32x8 bits = Widen8(p);
    U32x8 nan = (U32x8)((bits & 0x7f) == 0x7f) & 0x7fc00000u;
    return (F32x8)((U32x8)FromNarrow<4, 3, false>(bits) | nan);
  }
};

struct Float64 {
  using Vec = F64x4;
  static constexpr size_t kBytes = 8;
  static constexpr size_t kWidth = 4;
  static constexpr bool kHasNonFinite = true;
  static constexpr double kLowest = -__builtin_inf();
  static constexpr double kHighest = __builtin_inf();
  static DEJA_INLINE Vec Load(const uint8_t* p) { return LoadVector<F64x4>(p); }
  static DEJA_INLINE F64x4 Doubles(Vec v, int) { return v; }
  static DEJA_INLINE I64x4 Magnitude(Vec v) { return (I64x4)v & 0x7fffffffffffffff; }
  static DEJA_INLINE I64x4 IsFinite(Vec v) { return Magnitude(v) < 0x7ff0000000000000; }
  static DEJA_INLINE I64x4 IsNan(Vec v) { return Magnitude(v) > 0x7ff0000000000000; }
};

// Integers up to 32 bits, held as int32 minus a bias.
template <size_t kSize, bool kSigned>
struct InInt32 {
  using Vec = I32x8;
  static constexpr size_t kBytes = kSize;
  static constexpr size_t kWidth = 8;
  static constexpr bool kHasNonFinite = false;
  static constexpr bool kBiased = kSize == 4 && !kSigned;
  static constexpr int32_t kLowest = INT32_MIN;
  static constexpr int32_t kHighest = INT32_MAX;
  static DEJA_INLINE Vec Load(const uint8_t* p) {
    if constexpr (kSize == 1) {
      I32x8 v = (I32x8)Widen8(p);
      return kSigned ? (v ^ 0x80) - 0x80 : v;
    } else {
      I32x8 v = LoadVector<I32x8>(p);
      return kBiased ? v ^ INT32_MIN : v;
    }
  }
  static DEJA_INLINE F64x4 Doubles(Vec v, int half) {
    I32x4 h = half ? __builtin_shufflevector(v, v, 4, 5, 6, 7)
                   : __builtin_shufflevector(v, v, 0, 1, 2, 3);
    F64x4 d = __builtin_convertvector(h, F64x4);
    return kBiased ? d + 0x1p31 : d;
  }
};

using Int8 = InInt32<1, true>;
using UInt8 = InInt32<1, false>;
using Int32 = InInt32<4, true>;
using UInt32 = InInt32<4, false>;

template <typename V, typename Scalar, Scalar kMin, Scalar kMax>
struct InInt64 {
  using Vec = V;
  static constexpr size_t kBytes = 8;
  static constexpr size_t kWidth = 4;
  static constexpr bool kHasNonFinite = false;
  static constexpr Scalar kLowest = kMin;
  static constexpr Scalar kHighest = kMax;
  static DEJA_INLINE Vec Load(const uint8_t* p) { return LoadVector<V>(p); }
  static DEJA_INLINE F64x4 Doubles(Vec v, int) {
    return F64x4{(double)v[0], (double)v[1], (double)v[2], (double)v[3]};
  }
};

using Int64 = InInt64<I64x4, int64_t, INT64_MIN, INT64_MAX>;
using UInt64 = InInt64<U64x4, uint64_t, 0, UINT64_MAX>;

template <typename T>
struct Accumulator {
  using Vec = typename T::Vec;
  F64x4 sum[4] = {};
  F64x4 squares[4] = {};
  Vec low[2];
  Vec high[2];
  uint64_t nans = 0;
  uint64_t infs = 0;

  DEJA_INLINE Accumulator() {
    for (int i = 0; i < 2; ++i) {
      low[i] = Vec{} + T::kHighest;
      high[i] = Vec{} + T::kLowest;
    }
  }
};

template <typename T>
DEJA_INLINE void Extremes(Accumulator<T>& a, size_t part, typename T::Vec v, typename T::Vec w) {
  a.low[part & 1] = v < a.low[part & 1] ? v : a.low[part & 1];
  a.high[part & 1] = w > a.high[part & 1] ? w : a.high[part & 1];
}

// Sixteen elements, all finite (or of a type that has nothing else).
template <typename T>
DEJA_INLINE void AddBlock(Accumulator<T>& a, const uint8_t* p) {
  constexpr size_t kParts = kLanes / T::kWidth;
  constexpr size_t kDoubles = T::kWidth / 4;
  for (size_t part = 0; part < kParts; ++part) {
    typename T::Vec v = T::Load(p + part * T::kWidth * T::kBytes);
    for (size_t half = 0; half < kDoubles; ++half) {
      F64x4 d = T::Doubles(v, (int)half);
      a.sum[part * kDoubles + half] += d;
      a.squares[part * kDoubles + half] += d * d;
    }
    Extremes<T>(a, part, v, v);
  }
}

// How many elements were not finite, by place in the vector. Good for a chunk, not for more.
template <typename T>
struct Uncounted {
  using Mask = decltype(T::IsNan(typename T::Vec{}));
  Mask nans = {};
  Mask others = {};  // infinities
};

// Sixteen elements, some of which may not be finite.
template <typename T>
DEJA_INLINE void AddCheckedBlock(Accumulator<T>& a, Uncounted<T>& uncounted, const uint8_t* p) {
  using Vec = typename T::Vec;
  constexpr size_t kParts = kLanes / T::kWidth;
  constexpr size_t kDoubles = T::kWidth / 4;
  for (size_t part = 0; part < kParts; ++part) {
    Vec v = T::Load(p + part * T::kWidth * T::kBytes);
    auto finite = T::IsFinite(v);
    auto nan = T::IsNan(v);
    uncounted.nans -= nan;
    uncounted.others -= ~(finite | nan);
    Vec zeroed = (Vec)((decltype(finite))v & finite);
    for (size_t half = 0; half < kDoubles; ++half) {
      F64x4 d = T::Doubles(zeroed, (int)half);
      a.sum[part * kDoubles + half] += d;
      a.squares[part * kDoubles + half] += d * d;
    }
    Extremes<T>(a, part, finite ? v : Vec{} + T::kHighest, finite ? v : Vec{} + T::kLowest);
  }
}

template <typename T>
DEJA_INLINE void Count(Accumulator<T>& a, const Uncounted<T>& uncounted) {
  for (size_t i = 0; i < T::kWidth; ++i) {
    a.nans += (uint64_t)uncounted.nans[i];
    a.infs += (uint64_t)uncounted.others[i];
  }
}

// The last, incomplete block.
template <typename T>
void AddTail(Accumulator<T>& a, const uint8_t* p, size_t count) {
  using Vec = typename T::Vec;
  uint8_t padded[kLanes * T::kBytes] = {};
  memcpy(padded, p, count * T::kBytes);
  for (size_t i = 0; i < count; ++i) {
    size_t part = i / T::kWidth;
    size_t at = i % T::kWidth;
    Vec v = T::Load(padded + part * T::kWidth * T::kBytes);
    if constexpr (T::kHasNonFinite) {
      if (!T::IsFinite(v)[at]) {
        ++(T::IsNan(v)[at] ? a.nans : a.infs);
        continue;
      }
    }
    double d = T::Doubles(v, (int)(at / 4))[at % 4];
    a.sum[i / 4][i % 4] += d;
    a.squares[i / 4][i % 4] += d * d;
    if (v[at] < a.low[0][at]) a.low[0][at] = v[at];
    if (v[at] > a.high[0][at]) a.high[0][at] = v[at];
  }
}

template <typename T>
DEJA_INLINE bool AllFinite(const Accumulator<T>& a) {
  // A NaN or an infinity stays in its lane of squares. (Squares of doubles may also overflow; then
  // the checked loop does the same sums again.)
  F64x4 all = a.squares[0] + a.squares[1] + a.squares[2] + a.squares[3];
  double total = all[0] + all[1] + all[2] + all[3];
  return total - total == 0;
}

DEJA_INLINE double CombineLanes(const F64x4 (&lanes)[4]) {
  F64x4 four = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

template <typename T>
void Finish(const Accumulator<T>& a, size_t count, RawStats* out) {
  out->nan_count = a.nans;
  out->inf_count = a.infs;
  out->sum = CombineLanes(a.sum);
  out->sum_squares = CombineLanes(a.squares);
  // Finite doubles can overflow to both infinities; what is not a number is said to be too large.
  if (out->sum != out->sum) out->sum = __builtin_inf();
  if (a.nans + a.infs == count) {
    out->min = out->max = 0;
    return;
  }
  typename T::Vec low = a.low[0] < a.low[1] ? a.low[0] : a.low[1];
  typename T::Vec high = a.high[0] > a.high[1] ? a.high[0] : a.high[1];
  auto lowest = low[0];
  auto highest = high[0];
  for (size_t i = 1; i < T::kWidth; ++i) {
    if (low[i] < lowest) lowest = low[i];
    if (high[i] > highest) highest = high[i];
  }
  // Through a vector, so that a biased integer gets its bias back. Adding +0 turns -0 into +0.
  out->min = T::Doubles(typename T::Vec{} + lowest, 0)[0] + 0.0;
  out->max = T::Doubles(typename T::Vec{} + highest, 0)[0] + 0.0;
}

// Whole blocks of a chunk. While one is added, the same place of the next chunk is fetched. The
// sums leave the memory idle, and the hash of the next chunk would wait for it.
template <typename T>
DEJA_INLINE void AddBlocks(Accumulator<T>& a, const uint8_t* p, size_t blocks) {
  constexpr size_t kBlockBytes = kLanes * T::kBytes;
  for (size_t i = 0; i < blocks; ++i) {
    __builtin_prefetch(p + (blocks + i) * kBlockBytes);
    AddBlock<T>(a, p + i * kBlockBytes);
  }
}

#if defined(__AVX512F__)
DEJA_INLINE __m512 LoadWide(Float32, const uint8_t* p) {
  return _mm512_loadu_ps(p);
}
DEJA_INLINE __m512 LoadWide(BFloat16, const uint8_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
DEJA_INLINE __m512d DoublesOf(Float32, const uint8_t* p, __m512, int half) {
  return _mm512_cvtps_pd(_mm256_loadu_ps((const float*)p + 8 * half));
}
DEJA_INLINE __m512d DoublesOf(BFloat16, const uint8_t*, __m512 v, int half) {
  const __m512d both = _mm512_castps_pd(v);
  const __m256d one = half ? _mm512_extractf64x4_pd(both, 1) : _mm512_castpd512_pd256(both);
  return _mm512_cvtps_pd(_mm256_castpd_ps(one));
}

// The same sums in registers twice as wide. The square of a float is exact in a double, so a fused
// multiplication and addition rounds as often as the two do.
template <typename T>
DEJA_INLINE void AddBlocksWide(Accumulator<T>& a, const uint8_t* p, size_t blocks) {
  constexpr size_t kBlockBytes = kLanes * T::kBytes;
  __m512d sum[2];
  __m512d squares[2];
  __m512 low;
  __m512 high;
  memcpy(sum, a.sum, sizeof sum);
  memcpy(squares, a.squares, sizeof squares);
  memcpy(&low, a.low, sizeof low);
  memcpy(&high, a.high, sizeof high);
  for (size_t i = 0; i < blocks; ++i) {
    const uint8_t* block = p + i * kBlockBytes;
    __builtin_prefetch(block + blocks * kBlockBytes);
    const __m512 v = LoadWide(T(), block);
    for (int half = 0; half < 2; ++half) {
      const __m512d d = DoublesOf(T(), block, v, half);
      sum[half] = _mm512_add_pd(sum[half], d);
      squares[half] = _mm512_fmadd_pd(d, d, squares[half]);
    }
    low = _mm512_min_ps(v, low);
    high = _mm512_max_ps(v, high);
  }
  memcpy(a.sum, sum, sizeof sum);
  memcpy(a.squares, squares, sizeof squares);
  memcpy(a.low, &low, sizeof low);
  memcpy(a.high, &high, sizeof high);
}

template <>
DEJA_INLINE void AddBlocks<Float32>(Accumulator<Float32>& a, const uint8_t* p, size_t blocks) {
  AddBlocksWide(a, p, blocks);
}
template <>
DEJA_INLINE void AddBlocks<BFloat16>(Accumulator<BFloat16>& a, const uint8_t* p, size_t blocks) {
  AddBlocksWide(a, p, blocks);
}
#endif

// `hash`: the state of a hash that the elements are added to as well, while they are in the cache.
template <typename T>
void Stats(const uint8_t* p, size_t count, RawStats* out, void* hash) {
  Accumulator<T> a;
  size_t blocks = count / kLanes;
  constexpr size_t kBlockBytes = kLanes * T::kBytes;
  while (blocks > 0) {
    size_t n = blocks < kChunk / kLanes ? blocks : kChunk / kLanes;
    if (hash != nullptr) HashAdd(hash, p, n * kBlockBytes);
    Accumulator<T> next = a;
    AddBlocks<T>(next, p, n);
    if constexpr (T::kHasNonFinite) {
      if (!AllFinite(next)) {
        next = a;
        Uncounted<T> uncounted;
        for (size_t i = 0; i < n; ++i) AddCheckedBlock<T>(next, uncounted, p + i * kBlockBytes);
        Count(next, uncounted);
      }
    }
    a = next;
    p += n * kBlockBytes;
    blocks -= n;
  }
  if (count % kLanes != 0) {
    AddTail<T>(a, p, count % kLanes);
    if (hash != nullptr) HashAdd(hash, p, count % kLanes * T::kBytes);
  }
  Finish(a, count, out);
}

bool StatsOfType(const void* data, size_t count, uint32_t dtype, RawStats* out, void* hash) {
  auto* p = (const uint8_t*)data;
  switch (dtype) {
    case 0:
      Stats<Int8>(p, count, out, hash);
      return true;
    case 1:
      Stats<UInt8>(p, count, out, hash);
      return true;
    case 2:
      Stats<Int32>(p, count, out, hash);
      return true;
    case 3:
      Stats<UInt32>(p, count, out, hash);
      return true;
    case 4:
      Stats<Int64>(p, count, out, hash);
      return true;
    case 5:
      Stats<UInt64>(p, count, out, hash);
      return true;
    case 6:
      Stats<Float16>(p, count, out, hash);
      return true;
    case 7:
      Stats<Float32>(p, count, out, hash);
      return true;
    case 8:
      Stats<Float64>(p, count, out, hash);
      return true;
    case 9:
      Stats<BFloat16>(p, count, out, hash);
      return true;
    case 10:
      Stats<Float8E4M3>(p, count, out, hash);
      return true;
    case 11:
      Stats<Float8E5M2>(p, count, out, hash);
      return true;
    default:
      return false;
  }
}

}  // namespace

extern const DigestKernels DEJA_KERNELS;
const DigestKernels DEJA_KERNELS = {&Hash, &HashBegin, &HashAdd, &HashEnd, &StatsOfType};

}  // namespace deja::digest

#endif  // DEJA_DIGEST_DIGEST_LOOPS_H_
