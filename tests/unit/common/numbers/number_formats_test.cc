#include "common/numbers/number_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "reference.h"

namespace deja {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(NumberFormatsTest, EveryHalfSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float value = HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_EQ(FloatToHalf(value), kHalfNan);
    } else {
      ASSERT_EQ(FloatToHalf(value), half) << bits;
      ASSERT_EQ(static_cast<double>(value), app::Decode(ncclFloat16, half)) << bits;
    }
  }
}

TEST(NumberFormatsTest, EveryBfloatSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto bfloat = static_cast<uint16_t>(bits);
    float value = BfloatToFloat(bfloat);
    if (std::isnan(value)) {
      EXPECT_EQ(FloatToBfloat(value), kBfloatNan);
    } else {
      ASSERT_EQ(FloatToBfloat(value), bfloat) << bits;
    }
  }
}

TEST(NumberFormatsTest, EveryFp8SurvivesTheWayThroughFloatUnlessItIsInfinite) {
  for (auto [format, type] :
       {std::pair{Fp8::kE4M3, ncclFloat8e4m3}, {Fp8::kE5M2, ncclFloat8e5m2}}) {
    for (uint32_t bits = 0; bits < 256; ++bits) {
      auto fp8 = static_cast<uint8_t>(bits);
      float value = Fp8ToFloat(format, fp8);
      if (std::isnan(value)) {
        EXPECT_EQ(FloatToFp8(format, value), 0x7f);
      } else if (std::isinf(value)) {
        EXPECT_EQ(FloatToFp8(format, value), (bits & 0x80) | 0x7b);  // saturates
      } else {
        ASSERT_EQ(FloatToFp8(format, value), fp8) << bits;
        ASSERT_EQ(static_cast<double>(value), app::Decode(type, fp8)) << bits;
      }
    }
  }
}

TEST(NumberFormatsTest, KnownValues) {
  EXPECT_EQ(FloatToHalf(1.0f), 0x3c00);
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-kInfinity), 0xfc00);
  EXPECT_EQ(FloatToHalf(0x1p-24f), 0x0001);
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0x0000);    // a tie, to even
  EXPECT_EQ(FloatToHalf(0x1.8p-24f), 0x0002);  // a tie, to even
  EXPECT_EQ(FloatToHalf(-0.0f), 0x8000);
  EXPECT_EQ(FloatToBfloat(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBfloat(kInfinity), 0x7f80);
  EXPECT_EQ(FloatToFp8(Fp8::kE4M3, 448.0f), 0x7e);
  EXPECT_EQ(FloatToFp8(Fp8::kE4M3, 1e6f), 0x7e);
  EXPECT_EQ(FloatToFp8(Fp8::kE4M3, -kInfinity), 0xfe);
  EXPECT_EQ(FloatToFp8(Fp8::kE5M2, 57344.0f), 0x7b);
  EXPECT_EQ(FloatToFp8(Fp8::kE5M2, 1e9f), 0x7b);
  EXPECT_EQ(FloatToFp8(Fp8::kE4M3, 0x1p-9f), 0x01);
  EXPECT_EQ(FloatToFp8(Fp8::kE4M3, 0x1p-10f), 0x00);
}

TEST(NumberFormatsTest, RoundsAsTheReferenceDoes) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    uint32_t bits = random();
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (i % 2 == 0)
      value = std::ldexp(static_cast<float>(bits) * 0x1p-32f, static_cast<int>(bits % 50) - 30);
    ASSERT_EQ(FloatToHalf(value), app::Encode(ncclFloat16, value)) << value;
    ASSERT_EQ(FloatToBfloat(value), app::Encode(ncclBfloat16, value)) << value;
    ASSERT_EQ(FloatToFp8(Fp8::kE4M3, value), app::Encode(ncclFloat8e4m3, value)) << value;
    ASSERT_EQ(FloatToFp8(Fp8::kE5M2, value), app::Encode(ncclFloat8e5m2, value)) << value;
  }
}

}  // namespace
}  // namespace deja
