#include "common/numbers/number_formats.h"

#include <cmath>
#include <cstring>

namespace deja {
namespace {

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A binary format with `exponent_bits` and `mantissa_bits` below the sign, biased as IEEE 754 does.
struct Layout {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // E4M3 has none: its largest exponent holds numbers, and one NaN

  [[nodiscard]] int Bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

constexpr Layout kHalfLayout{5, 10, true};
constexpr Layout kE4M3Layout{4, 3, false};
constexpr Layout kE5M2Layout{5, 2, true};

float Decode(const Layout& layout, uint32_t magnitude) {
  uint32_t mantissa = magnitude & ((1u << layout.mantissa_bits) - 1);
  int exponent = static_cast<int>(magnitude >> layout.mantissa_bits);
  int top = (1 << layout.exponent_bits) - 1;
  if (layout.has_infinity && exponent == top) return FromBits(mantissa ? kFloatNan : 0x7f800000u);
  if (!layout.has_infinity &&
      magnitude == (1u << (layout.exponent_bits + layout.mantissa_bits)) - 1)
    return FromBits(kFloatNan);
  if (exponent == 0)
    return std::ldexp(static_cast<float>(mantissa), 1 - layout.Bias() - layout.mantissa_bits);
  uint32_t bits = (static_cast<uint32_t>(exponent - layout.Bias() + 127) << 23) |
                  (mantissa << (23 - layout.mantissa_bits));
  return FromBits(bits);
}

// `magnitude` is a finite float's bits without the sign. The result may lie beyond the format's
// largest number; the caller knows what that becomes.
uint32_t EncodeFinite(const Layout& layout, uint32_t magnitude) {
  int exponent = static_cast<int>(magnitude >> 23) - 127 + layout.Bias();
  uint64_t significand = magnitude & 0x7fffff;
  if (magnitude >> 23) significand |= 0x800000;
  int drop = 23 - layout.mantissa_bits;
  if (exponent <= 0) {  // becomes a denormal number
    drop += 1 - exponent;
    exponent = 0;
    if (drop > 40) return 0;
  } else {
    significand -= 0x800000;
  }
  uint64_t kept = (static_cast<uint64_t>(exponent) << layout.mantissa_bits) + (significand >> drop);
  uint64_t rest = significand & ((uint64_t{1} << drop) - 1);
  uint64_t half = uint64_t{1} << (drop - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  return static_cast<uint32_t>(kept);
}

}  // namespace

float HalfToFloat(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  return FromBits(Bits(Decode(kHalfLayout, half & 0x7fff)) | sign);
}

uint16_t FloatToHalf(float value) {
  uint32_t magnitude = Bits(value) & 0x7fffffff;
  auto sign = static_cast<uint16_t>(Bits(value) >> 16 & 0x8000);
  if (magnitude > 0x7f800000) return kHalfNan;
  uint32_t encoded = magnitude == 0x7f800000 ? 0x7c00 : EncodeFinite(kHalfLayout, magnitude);
  if (encoded > 0x7c00) encoded = 0x7c00;
  return static_cast<uint16_t>(sign | encoded);
}

float BfloatToFloat(uint16_t bfloat) {
  return FromBits(static_cast<uint32_t>(bfloat) << 16);
}

uint16_t FloatToBfloat(float value) {
  uint32_t bits = Bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return kBfloatNan;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float Fp8ToFloat(Fp8 format, uint8_t bits) {
  const Layout& layout = format == Fp8::kE4M3 ? kE4M3Layout : kE5M2Layout;
  float magnitude = Decode(layout, bits & 0x7f);
  return FromBits(Bits(magnitude) | static_cast<uint32_t>(bits & 0x80) << 24);
}

uint8_t FloatToFp8(Fp8 format, float value) {
  const Layout& layout = format == Fp8::kE4M3 ? kE4M3Layout : kE5M2Layout;
  uint32_t largest = format == Fp8::kE4M3 ? 0x7e : 0x7b;
  uint32_t magnitude = Bits(value) & 0x7fffffff;
  auto sign = static_cast<uint8_t>(Bits(value) >> 24 & 0x80);
  if (magnitude > 0x7f800000) return 0x7f;
  uint32_t encoded = magnitude == 0x7f800000 ? largest : EncodeFinite(layout, magnitude);
  if (encoded > largest) encoded = largest;
  return static_cast<uint8_t>(sign | encoded);
}

}  // namespace deja
