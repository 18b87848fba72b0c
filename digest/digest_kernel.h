// What a GPU computes of a tensor, so that the host completes its digest (digest/digest.h) without
// its bytes. One source for the device (digest_kernel.cu) and for the processor, where tests run
// it.
//
// XXH3 reads a long input in blocks of 1024 bytes, 16 stripes each. Within a block, its eight
// accumulators only add terms that depend on the bytes and on their place in the block. So the sums
// of all blocks are computed at the same time. The host does the step between blocks from these
// sums (digest_sums.h), a sixteenth of the bytes. Four threads take one block, each the same 16
// bytes of every stripe, which feed two of the accumulators; no thread needs anything of another
// one. Statistics become one record for each warp.
//
// Pure functions, no state. Plain types and no function of any library: this is compiled for GPUs.
#ifndef DEJA_DIGEST_DIGEST_KERNEL_H_
#define DEJA_DIGEST_DIGEST_KERNEL_H_

#include <stdint.h>

#if defined(__CUDA__) || defined(__CUDACC__)
#define DEJA_GPU __attribute__((device)) __attribute__((always_inline)) inline
#define DEJA_GPU_DATA __attribute__((device))
#define DEJA_GPU_UNROLL _Pragma("unroll")
#define DEJA_GPU_NO_UNROLL _Pragma("unroll 1")
#else
#define DEJA_GPU inline
#define DEJA_GPU_DATA inline
#define DEJA_GPU_UNROLL
#define DEJA_GPU_NO_UNROLL
#endif

namespace deja::digest::gpu {

inline constexpr uint32_t kBlockBytes = 1024;
inline constexpr uint32_t kStripes = 16;
inline constexpr uint32_t kSumBytes = 64;  // of a block
inline constexpr uint32_t kThreadsOfBlock = 4;
inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kBlocksOfWarp = kWarp / kThreadsOfBlock;
inline constexpr uint32_t kThreads = 128;  // of a launch's thread blocks
inline constexpr uint32_t kBlocksOfThreads = kThreads / kThreadsOfBlock;

// Statistics of the elements of a warp's blocks. Sums and extremes are of the finite ones; if there
// is none the extremes mean nothing.
struct Record {
  double sum;
  double squares;
  double low;
  double high;
  uint32_t nans;
  uint32_t infs;
};
static_assert(sizeof(Record) == 40);

// What one launch is given. It leaves at `results`: kSumBytes for each block, a Record for each
// kBlocksOfWarp blocks, and the `tail_bytes` bytes that are at `tail`.
struct Work {
  const unsigned char* data;
  uint64_t blocks;
  unsigned char* results;  // aligned to 16
  const unsigned char* tail;
  uint64_t tail_bytes;
};

// The first words of XXH3's default secret.
DEJA_GPU_DATA const uint64_t kSecret[kStripes + 7] = {
    0xbe4ba423396cfeb8u, 0x1cad21f72c81017cu, 0xdb979083e96dd4deu, 0x1f67b3b7a4a44072u,
    0x78e5c0cc4ee679cbu, 0x2172ffcc7dd05a82u, 0x8e2443f7744608b8u, 0x4c263a81e69035e0u,
    0xcb00c391bb52283cu, 0xa32e531b8b65d088u, 0x4ef90da297486471u, 0xd8acdea946ef1938u,
    0x3f349ce33f76faa8u, 0x1d4f0bc7c7bbdcf9u, 0x3159b4cd4be0518au, 0x647378d9c97e9fc8u,
    0xc3ebd33483acc5eau, 0xeb6313faffa081c5u, 0x49daf0b751dd0d17u, 0x9e68d429265516d3u,
    0xfca1477d58be162bu, 0xce31d07ad1b8f88fu, 0x280416958f3acb45u};

struct alignas(16) Pair {
  uint64_t first;
  uint64_t second;
};

// 16 bytes whose address is a multiple of a Word's size only.
template <typename Word>
DEJA_GPU Pair LoadBy(const unsigned char* p) {
  constexpr uint32_t kOfHalf = 8 / sizeof(Word);
  Pair pair = {0, 0};
  DEJA_GPU_NO_UNROLL
  for (uint32_t i = 0; i < kOfHalf; ++i) {
    Word words[2];
    __builtin_memcpy(&words[0], __builtin_assume_aligned(p, sizeof(Word)), sizeof(Word));
    __builtin_memcpy(&words[1], __builtin_assume_aligned(p + 8, sizeof(Word)), sizeof(Word));
    pair.first |= static_cast<uint64_t>(words[0]) << (i * 8 * sizeof(Word));
    pair.second |= static_cast<uint64_t>(words[1]) << (i * 8 * sizeof(Word));
    p += sizeof(Word);
  }
  return pair;
}

// Types of elements: how many bytes, what they are held as, and what is added up in which type.
// Elements that are not finite have all bits of kExponent set: in a word of them, adding kOne to
// these bits carries into kTop.
struct FloatsAsFloat {
  using Held = float;
  using Sum = double;
  using Squares = double;
  static constexpr bool kHasNonFinite = true;
  static constexpr bool kSquareIsExact = true;  // as a double
  static constexpr float kHighest = __builtin_inff();
  static constexpr float kLowest = -__builtin_inff();
  static DEJA_GPU float Min(float a, float b) { return __builtin_fminf(a, b); }
  static DEJA_GPU float Max(float a, float b) { return __builtin_fmaxf(a, b); }
};

// IEEE half precision; exact.
DEJA_GPU float FromHalf(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<uint16_t>(bits)));
  return value;
#else
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  constexpr uint32_t kSmallest = kRebias + (1u << 23);
  const uint32_t moved = (bits & 0x7fffu) << 13;
  const uint32_t exponent = moved & 0x0f800000u;
  uint32_t magnitude = moved + kRebias;
  if (exponent == 0x0f800000u) {
    magnitude += kRebias;
  } else if (exponent == 0) {
    magnitude = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, moved + kSmallest) -
                                                 __builtin_bit_cast(float, kSmallest));
  }
  return __builtin_bit_cast(float, magnitude | (bits & 0x8000u) << 16);
#endif
}

struct Float32 : FloatsAsFloat {
  static constexpr uint32_t kBytes = 4;
  static constexpr uint64_t kExponent = 0x7f8000007f800000u;
  static constexpr uint64_t kOne = 0x0080000000800000u;
  static constexpr uint64_t kTop = 0x8000000080000000u;
  static DEJA_GPU float Get(uint32_t bits) { return __builtin_bit_cast(float, bits); }
};
struct BFloat16 : FloatsAsFloat {
  static constexpr uint32_t kBytes = 2;
  static constexpr uint64_t kExponent = 0x7f807f807f807f80u;
  static constexpr uint64_t kOne = 0x0080008000800080u;
  static constexpr uint64_t kTop = 0x8000800080008000u;
  static DEJA_GPU float Get(uint32_t bits) { return __builtin_bit_cast(float, bits << 16); }
};
struct Float16 : FloatsAsFloat {
  static constexpr uint32_t kBytes = 2;
  static constexpr uint64_t kExponent = 0x7c007c007c007c00u;
  static constexpr uint64_t kOne = 0x0400040004000400u;
  static constexpr uint64_t kTop = 0x8000800080008000u;
  static DEJA_GPU float Get(uint32_t bits) { return FromHalf(bits); }
};
struct Float8E5M2 : FloatsAsFloat {
  static constexpr uint32_t kBytes = 1;
  static constexpr uint64_t kExponent = 0x7c7c7c7c7c7c7c7cu;
  static constexpr uint64_t kOne = 0x0404040404040404u;
  static constexpr uint64_t kTop = 0x8080808080808080u;
  static DEJA_GPU float Get(uint32_t bits) { return FromHalf(bits << 8); }
};
struct Float8E4M3 : FloatsAsFloat {  // OCP: no infinities; all ones is the only NaN
  static constexpr uint32_t kBytes = 1;
  static constexpr uint64_t kExponent = 0x7f7f7f7f7f7f7f7fu;
  static constexpr uint64_t kOne = 0x0101010101010101u;
  static constexpr uint64_t kTop = 0x8080808080808080u;
  // The value of an element's bits.
  static DEJA_GPU float Get(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7fu;
    // As a half, whose exponent has one bit more and so a bias that is 8 more.
    const float value = FromHalf((bits & 0x80u) << 8 | magnitude << 7) * 256.0F;
    return magnitude == 0x7f ? __builtin_nanf("") : value;
  }
};
struct Float64 {
  using Held = double;
  using Sum = double;
  using Squares = double;
  static constexpr uint32_t kBytes = 8;
  static constexpr bool kHasNonFinite = true;
  static constexpr bool kSquareIsExact = false;
  static constexpr double kHighest = __builtin_inf();
  static constexpr double kLowest = -__builtin_inf();
  static constexpr uint64_t kExponent = 0x7ff0000000000000u;
  static constexpr uint64_t kOne = 0x0010000000000000u;
  static constexpr uint64_t kTop = 0x8000000000000000u;
  static DEJA_GPU double Min(double a, double b) { return __builtin_fmin(a, b); }
  static DEJA_GPU double Max(double a, double b) { return __builtin_fmax(a, b); }
  static DEJA_GPU double Get(uint64_t bits) { return __builtin_bit_cast(double, bits); }
};

// Sums of a thread's 256 bytes are exact where `SumType` and `SquareType` are integers.
template <typename T, typename SumType, typename SquareType, T kLow, T kHigh>
struct Integer {
  using Held = T;
  using Sum = SumType;
  using Squares = SquareType;
  static constexpr uint32_t kBytes = sizeof(T);
  static constexpr bool kHasNonFinite = false;
  static constexpr bool kSquareIsExact = false;
  static constexpr T kHighest = kHigh;
  static constexpr T kLowest = kLow;
  static DEJA_GPU T Min(T a, T b) { return a < b ? a : b; }
  static DEJA_GPU T Max(T a, T b) { return a > b ? a : b; }
  static DEJA_GPU T Get(uint64_t bits) { return static_cast<T>(bits); }
};
using Int8 = Integer<int8_t, int32_t, int32_t, INT8_MIN, INT8_MAX>;
using UInt8 = Integer<uint8_t, int32_t, int32_t, 0, UINT8_MAX>;
using Int32 = Integer<int32_t, int64_t, double, INT32_MIN, INT32_MAX>;
using UInt32 = Integer<uint32_t, int64_t, double, 0, UINT32_MAX>;
using Int64 = Integer<int64_t, double, double, INT64_MIN, INT64_MAX>;
using UInt64 = Integer<uint64_t, double, double, 0, UINT64_MAX>;

struct Raw {};  // bytes that are no elements

// What a thread knows of its elements.
template <typename T>
struct Statistics {
  // Loads of a thread that are under way at the same time: as many as its registers have room for.
  static constexpr uint32_t kLoadsAtOnce = T::kBytes == 4 ? 4 : 2;

  typename T::Sum sum = 0;
  typename T::Squares squares = 0;
  typename T::Held low = T::kHighest;
  typename T::Held high = T::kLowest;
  uint32_t nans = 0;
  uint32_t infs = 0;

  // An element that is finite.
  DEJA_GPU void AddFinite(typename T::Held v) {
    sum += static_cast<typename T::Sum>(v);
    const auto square = static_cast<typename T::Squares>(+v);
    // The square of a float is exact in a double: a fused operation rounds as often as the two do.
    if constexpr (T::kSquareIsExact)
      squares = __builtin_fma(square, square, squares);
    else
      squares += square * square;
    low = T::Min(low, v);
    high = T::Max(high, v);
  }
  static DEJA_GPU typename T::Held Element(const Pair& pair, uint32_t i) {
    constexpr uint32_t kOfWord = 8 / T::kBytes;
    uint64_t bits = (i < kOfWord ? pair.first : pair.second) >> (i % kOfWord * 8 * T::kBytes);
    if constexpr (T::kBytes < 8) bits &= (uint64_t{1} << (8 * T::kBytes)) - 1;
    return T::Get(bits);
  }
  static DEJA_GPU bool AllFinite(const Pair& pair) {
    if constexpr (T::kHasNonFinite)
      return ((((pair.first & T::kExponent) + T::kOne) | ((pair.second & T::kExponent) + T::kOne)) &
              T::kTop) == 0;
    return true;
  }
  // The elements of 16 bytes.
  DEJA_GPU void Add(const Pair& pair) {
    constexpr uint32_t kElements = 16 / T::kBytes;
    if (AllFinite(pair)) {
      DEJA_GPU_UNROLL
      for (uint32_t i = 0; i < kElements; ++i) AddFinite(Element(pair, i));
      return;
    }
    if constexpr (T::kHasNonFinite) {
      DEJA_GPU_NO_UNROLL
      for (uint32_t i = 0; i < kElements; ++i) {
        const typename T::Held v = Element(pair, i);
        const bool nan = v != v;
        const bool inf = !nan && v - v != 0;
        nans += nan ? 1 : 0;
        infs += inf ? 1 : 0;
        if (!nan && !inf) AddFinite(v);
      }
    }
  }
  [[nodiscard]] DEJA_GPU Record Result() const {
    return {static_cast<double>(sum),
            static_cast<double>(squares),
            static_cast<double>(low),
            static_cast<double>(high),
            nans,
            infs};
  }
};
template <>
struct Statistics<Raw> {
  static constexpr uint32_t kLoadsAtOnce = 4;
  DEJA_GPU void Add(const Pair&) {}
  [[nodiscard]] DEJA_GPU Record Result() const { return {}; }
};

// What two of the eight accumulators get from the blocks of a thread.
struct Sums {
  uint64_t first = 0;
  uint64_t second = 0;

  // The low half of `keyed` times its high half.
  static DEJA_GPU uint64_t Product(uint64_t keyed) {
#if defined(__CUDA_ARCH__)
    uint64_t product;  // clang makes a multiplication of 64 bits of it, which is three instructions
    asm("{ .reg .b32 %%low, %%high; mov.b64 {%%low, %%high}, %1; mul.wide.u32 %0, %%low, %%high; }"
        : "=l"(product)
        : "l"(keyed));
    return product;
#else
    return (keyed & 0xffffffffu) * (keyed >> 32);
#endif
  }
  // Adds a pair of 8 bytes of one stripe, with the keys of its two accumulators.
  DEJA_GPU void Add(const Pair& pair, uint64_t first_key, uint64_t second_key) {
    first += pair.second + Product(pair.first ^ first_key);
    second += pair.first + Product(pair.second ^ second_key);
  }
};

// `p`: the thread's part of a block's first stripe.
template <typename T>
DEJA_GPU void AddStripes(const unsigned char* p, uint32_t part, Sums& sums, Statistics<T>& of) {
  constexpr uint32_t kStripeBytes = kBlockBytes / kStripes;
  constexpr uint32_t kAtOnce = Statistics<T>::kLoadsAtOnce;
  const auto address = reinterpret_cast<uintptr_t>(p);
  const uint64_t* keys = kSecret + 2 * part;
  DEJA_GPU_NO_UNROLL
  for (uint32_t stripe = 0; stripe < kStripes; stripe += kAtOnce) {
    Pair pairs[kAtOnce];
    DEJA_GPU_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const unsigned char* from = p + i * kStripeBytes;
      if (address % sizeof(Pair) == 0)
        __builtin_memcpy(&pairs[i], __builtin_assume_aligned(from, sizeof(Pair)), sizeof(Pair));
      else
        pairs[i] = address % 4 == 0 ? LoadBy<uint32_t>(from) : LoadBy<uint8_t>(from);
    }
    DEJA_GPU_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      sums.Add(pairs[i], keys[i], keys[i + 1]);
      of.Add(pairs[i]);
    }
    p += kAtOnce * kStripeBytes;
    keys += kAtOnce;
  }
}

// Everything that thread number `thread` of a launch does. Returns its part of its warp's record.
template <typename T>
DEJA_GPU Record RunThread(const Work& work, uint64_t thread, uint64_t threads) {
  Statistics<T> statistics;
  const uint64_t block = thread / kThreadsOfBlock;
  const auto part = static_cast<uint32_t>(thread % kThreadsOfBlock);
  const uint64_t records = (work.blocks + kBlocksOfWarp - 1) / kBlocksOfWarp;
  if (block < work.blocks) {
    const unsigned char* p = work.data + block * kBlockBytes + part * sizeof(Pair);
    Sums sums;
    AddStripes(p, part, sums, statistics);
    const Pair both = {sums.first, sums.second};
    __builtin_memcpy(
        __builtin_assume_aligned(work.results + block * kSumBytes + part * sizeof both, 16), &both,
        sizeof both);
  }
  unsigned char* tail = work.results + work.blocks * kSumBytes + records * sizeof(Record);
  for (uint64_t i = thread; i < work.tail_bytes; i += threads) tail[i] = work.tail[i];
  return statistics.Result();
}

// Adds the statistics of `other` to `into`.
DEJA_GPU void Merge(Record& into, const Record& other) {
  into.sum += other.sum;
  into.squares += other.squares;
  into.low = other.low < into.low ? other.low : into.low;
  into.high = other.high > into.high ? other.high : into.high;
  into.nans += other.nans;
  into.infs += other.infs;
}

// Where a warp's first thread puts the merged record; null: its blocks are after the last one.
DEJA_GPU unsigned char* RecordOf(const Work& work, uint64_t thread) {
  const uint64_t warp = thread / kWarp;
  if (warp * kBlocksOfWarp >= work.blocks) return nullptr;
  return work.results + work.blocks * kSumBytes + warp * sizeof(Record);
}

}  // namespace deja::digest::gpu

// The kernels' names, and the ncclDataType_t that each is for: X(name, element type, number).
#define DEJA_DIGEST_KERNELS(X)              \
  X(deja_digest_int8, Int8, 0)              \
  X(deja_digest_uint8, UInt8, 1)            \
  X(deja_digest_int32, Int32, 2)            \
  X(deja_digest_uint32, UInt32, 3)          \
  X(deja_digest_int64, Int64, 4)            \
  X(deja_digest_uint64, UInt64, 5)          \
  X(deja_digest_float16, Float16, 6)        \
  X(deja_digest_float32, Float32, 7)        \
  X(deja_digest_float64, Float64, 8)        \
  X(deja_digest_bfloat16, BFloat16, 9)      \
  X(deja_digest_float8e4m3, Float8E4M3, 10) \
  X(deja_digest_float8e5m2, Float8E5M2, 11) \
  X(deja_digest_raw, Raw, 12)

#endif  // DEJA_DIGEST_DIGEST_KERNEL_H_
