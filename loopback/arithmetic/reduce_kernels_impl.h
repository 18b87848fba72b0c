// The inner loops themselves. Included by exactly the two files that define the tables; everything
// here has internal linkage, so that code made for AVX2 is never merged into code for all.
#ifndef DEJA_LOOPBACK_ARITHMETIC_REDUCE_KERNELS_IMPL_H_
#define DEJA_LOOPBACK_ARITHMETIC_REDUCE_KERNELS_IMPL_H_

#include <stdint.h>
#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "loopback/arithmetic/reduce_kernels.h"

namespace deja::loopback {
namespace {

inline float FloatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t BitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline double DoubleOf(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint64_t BitsOf(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Floating-point results are canonical: one NaN, and min/max as a GPU's instructions define them
// (a NaN loses against a number, -0 is less than +0).
inline float Canonical(float value) {
  return value == value ? value : FloatOf(0x7fffffffu);
}
inline double Canonical(double value) {
  return value == value ? value : DoubleOf(0xfff8000000000000ull);
}
template <typename T>
inline T FloatMin(T a, T b) {
  T least = a < b ? a : b;
  least = a == b ? (BitsOf(a) < BitsOf(b) ? b : a) : least;  // of +0 and -0 the one with a sign
  least = b != b ? a : least;
  least = a != a ? b : least;
  return Canonical(least);
}
template <typename T>
inline T FloatMax(T a, T b) {
  T most = a > b ? a : b;
  most = a == b ? (BitsOf(a) < BitsOf(b) ? a : b) : most;
  most = b != b ? a : most;
  most = a != a ? b : most;
  return Canonical(most);
}

struct Sum {
  static float Do(float a, float b) { return Canonical(a + b); }
  static double Do(double a, double b) { return Canonical(a + b); }
  // Integers wrap; in unsigned, where that is defined.
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Prod {
  static float Do(float a, float b) { return Canonical(a * b); }
  static double Do(double a, double b) { return Canonical(a * b); }
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct Max {
  static float Do(float a, float b) { return FloatMax(a, b); }
  static double Do(double a, double b) { return FloatMax(a, b); }
  template <typename T>
  static T Do(T a, T b) {
    return a > b ? a : b;
  }
};
struct Min {
  static float Do(float a, float b) { return FloatMin(a, b); }
  static double Do(double a, double b) { return FloatMin(a, b); }
  template <typename T>
  static T Do(T a, T b) {
    return a < b ? a : b;
  }
};

template <typename T>
inline T Load(const void* base, size_t i) {
  T value;
  memcpy(&value, static_cast<const char*>(base) + i * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
inline void Store(void* base, size_t i, T value) {
  memcpy(static_cast<char*>(base) + i * sizeof(T), &value, sizeof(T));
}

// Through a block on the stack, so that the compiler knows that nothing aliases and vectorises.
inline constexpr size_t kBlock = 256;

template <typename T, typename Op>
void CombineLoop(void* dst, const void* local, const void* accumulated, size_t count) {
  T out[kBlock];
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (size_t j = 0; j < kBlock; ++j)
      out[j] = Op::Do(Load<T>(local, i + j), Load<T>(accumulated, i + j));
    memcpy(static_cast<char*>(dst) + i * sizeof(T), out, sizeof out);
  }
  for (; i < count; ++i) Store<T>(dst, i, Op::Do(Load<T>(local, i), Load<T>(accumulated, i)));
}

template <typename T>
void ScaleLoop(void* dst, const void* x, const void* scalar, size_t count) {
  T factor = Load<T>(scalar, 0);
  for (size_t i = 0; i < count; ++i) Store<T>(dst, i, Prod::Do(Load<T>(x, i), factor));
}

template <typename T>
void DivideLoop(void* x, int divisor, size_t count) {
  for (size_t i = 0; i < count; ++i)
    Store<T>(x, i, static_cast<T>(Load<T>(x, i) / static_cast<T>(divisor)));
}
// A divisor that does not fit in eight bits divides as an int.
template <>
void DivideLoop<int8_t>(void* x, int divisor, size_t count) {
  for (size_t i = 0; i < count; ++i)
    Store<int8_t>(x, i, static_cast<int8_t>(Load<int8_t>(x, i) / divisor));
}
template <>
void DivideLoop<uint8_t>(void* x, int divisor, size_t count) {
  for (size_t i = 0; i < count; ++i)
    Store<uint8_t>(x, i, static_cast<uint8_t>(Load<uint8_t>(x, i) / divisor));
}

// The two 16-bit floating-point formats compute in float and round the result. For one operation on
// two such numbers that is the same as rounding once.
struct Half {
  static float ToFloat(uint16_t half) {
    uint32_t magnitude = half & 0x7fffu;
    uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    // Exponent 31 is infinity or NaN; denormal numbers come out of a float subtraction.
    uint32_t normal = (magnitude << 13) + 0x38000000u;
    uint32_t special = (magnitude << 13) | 0x7f800000u;
    uint32_t denormal = BitsOf(FloatOf((magnitude << 13) + 0x38800000u) - FloatOf(0x38800000u));
    uint32_t bits = magnitude >= 0x7c00u ? special : (magnitude < 0x0400u ? denormal : normal);
    return FloatOf(bits | sign);
  }
  static uint16_t FromFloat(float value) {
    uint32_t bits = BitsOf(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t odd = magnitude >> 13 & 1;
    uint32_t normal = (magnitude - 0x38000000u + 0x0fffu + odd) >> 13;
    uint32_t denormal = BitsOf(FloatOf(magnitude) + 0.5f) - 0x3f000000u;  // rounds at 2^-24
    uint32_t half = magnitude < 0x38800000u ? denormal : normal;
    half = magnitude >= 0x47800000u ? 0x7c00u : half;  // 65536 and above
    half |= sign;
    return static_cast<uint16_t>(magnitude > 0x7f800000u ? 0x7fffu : half);
  }
#if defined(__F16C__)
  static __m256 Load8(const void* base, size_t i) {
    return _mm256_cvtph_ps(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const char*>(base) + 2 * i)));
  }
  static void Store8(void* base, size_t i, __m256 value) {
    __m128i half = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256i nan32 = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    __m128i nan16 =
        _mm_packs_epi32(_mm256_castsi256_si128(nan32), _mm256_extracti128_si256(nan32, 1));
    half = _mm_blendv_epi8(half, _mm_set1_epi16(0x7fff), nan16);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<char*>(base) + 2 * i), half);
  }
#endif
};

struct Bfloat {
  static float ToFloat(uint16_t bfloat) { return FloatOf(static_cast<uint32_t>(bfloat) << 16); }
  static uint16_t FromFloat(float value) {
    uint32_t bits = BitsOf(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
  }
};

template <typename Format, typename Op>
void CombineLoop16(void* dst, const void* local, const void* accumulated, size_t count) {
  uint16_t out[kBlock];
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (size_t j = 0; j < kBlock; ++j)
      out[j] = Format::FromFloat(Op::Do(Format::ToFloat(Load<uint16_t>(local, i + j)),
                                        Format::ToFloat(Load<uint16_t>(accumulated, i + j))));
    memcpy(static_cast<char*>(dst) + i * 2, out, sizeof out);
  }
  for (; i < count; ++i)
    Store<uint16_t>(dst, i,
                    Format::FromFloat(Op::Do(Format::ToFloat(Load<uint16_t>(local, i)),
                                             Format::ToFloat(Load<uint16_t>(accumulated, i)))));
}

template <typename Format>
void ScaleLoop16(void* dst, const void* x, const void* scalar, size_t count) {
  float factor = Format::ToFloat(Load<uint16_t>(scalar, 0));
  for (size_t i = 0; i < count; ++i)
    Store<uint16_t>(dst, i, Format::FromFloat(Format::ToFloat(Load<uint16_t>(x, i)) * factor));
}

#if defined(__F16C__)
// Sums and products of fp16 by the processor's own conversions; min and max are rare enough for the
// general loop.
inline __m256 Do8(Sum, __m256 a, __m256 b) {
  return _mm256_add_ps(a, b);
}
inline __m256 Do8(Prod, __m256 a, __m256 b) {
  return _mm256_mul_ps(a, b);
}
template <typename Op>
void CombineHalf(void* dst, const void* local, const void* accumulated, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    Half::Store8(dst, i, Do8(Op{}, Half::Load8(local, i), Half::Load8(accumulated, i)));
  CombineLoop16<Half, Op>(static_cast<char*>(dst) + 2 * i, static_cast<const char*>(local) + 2 * i,
                          static_cast<const char*>(accumulated) + 2 * i, count - i);
}
#else
template <typename Op>
void CombineHalf(void* dst, const void* local, const void* accumulated, size_t count) {
  CombineLoop16<Half, Op>(dst, local, accumulated, count);
}
#endif

#define DEJA_COMBINE_ROW(T) \
  { CombineLoop<T, Sum>, CombineLoop<T, Prod>, CombineLoop<T, Max>, CombineLoop<T, Min> }

inline constexpr KernelTable kTable = {
    {DEJA_COMBINE_ROW(int8_t),
     DEJA_COMBINE_ROW(uint8_t),
     DEJA_COMBINE_ROW(int32_t),
     DEJA_COMBINE_ROW(uint32_t),
     DEJA_COMBINE_ROW(int64_t),
     DEJA_COMBINE_ROW(uint64_t),
     {CombineHalf<Sum>, CombineHalf<Prod>, CombineLoop16<Half, Max>, CombineLoop16<Half, Min>},
     DEJA_COMBINE_ROW(float),
     DEJA_COMBINE_ROW(double),
     {CombineLoop16<Bfloat, Sum>, CombineLoop16<Bfloat, Prod>, CombineLoop16<Bfloat, Max>,
      CombineLoop16<Bfloat, Min>},
     {},
     {}},
    {ScaleLoop<int8_t>, ScaleLoop<uint8_t>, ScaleLoop<int32_t>, ScaleLoop<uint32_t>,
     ScaleLoop<int64_t>, ScaleLoop<uint64_t>, ScaleLoop16<Half>, ScaleLoop<float>,
     ScaleLoop<double>, ScaleLoop16<Bfloat>, nullptr, nullptr},
    {DivideLoop<int8_t>, DivideLoop<uint8_t>, DivideLoop<int32_t>, DivideLoop<uint32_t>,
     DivideLoop<int64_t>, DivideLoop<uint64_t>, nullptr, nullptr, nullptr, nullptr, nullptr,
     nullptr}};

#undef DEJA_COMBINE_ROW

}  // namespace
}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_ARITHMETIC_REDUCE_KERNELS_IMPL_H_
