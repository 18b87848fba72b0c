#include "digest/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "format/wire/messages.h"

namespace deja::preload {
namespace {

constexpr uint32_t kInt32 = 2;
constexpr uint32_t kInt64 = 4;
constexpr uint32_t kFloat32 = 7;
constexpr uint32_t kFloat64 = 8;
constexpr uint32_t kBfloat16 = 9;

template <typename T>
std::span<const std::byte> BytesOfElements(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST(CompareElementsTest, FindsTheFirstElementAndCountsAll) {
  std::vector<float> recorded{1, 2, 3, 4};
  std::vector<float> live{1, std::nextafter(2.0f, 3.0f), 3, 5};
  const digest::ElementDifference difference =
      digest::CompareElements(BytesOfElements(recorded), BytesOfElements(live), kFloat32);
  ASSERT_TRUE(difference.found);
  EXPECT_EQ(difference.first, 1u);
  EXPECT_EQ(difference.different, 2u);
  EXPECT_EQ(difference.ulps, 1u);
  EXPECT_EQ(difference.a, "2");
  EXPECT_EQ(difference.b, "2.0000002");
}

TEST(CompareElementsTest, DistanceCrossesZeroAndNanHasNone) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  std::vector<float> recorded{-tiny};
  std::vector<float> live{tiny};
  EXPECT_EQ(
      digest::CompareElements(BytesOfElements(recorded), BytesOfElements(live), kFloat32).ulps, 2u);
  live[0] = std::nanf("");
  const digest::ElementDifference difference =
      digest::CompareElements(BytesOfElements(recorded), BytesOfElements(live), kFloat32);
  EXPECT_EQ(difference.ulps, UINT64_MAX);
  EXPECT_EQ(difference.b, "nan");
}

TEST(CompareElementsTest, IntegersHaveNoDistance) {
  std::vector<int32_t> recorded{5};
  std::vector<int32_t> live{7};
  const digest::ElementDifference difference =
      digest::CompareElements(BytesOfElements(recorded), BytesOfElements(live), kInt32);
  EXPECT_EQ(difference.ulps, UINT64_MAX);
  EXPECT_EQ(difference.b, "7");
}

TEST(CompareElementsTest, EqualBytesHaveNoDifference) {
  std::vector<double> same{0.1, -0.0};
  EXPECT_FALSE(
      digest::CompareElements(BytesOfElements(same), BytesOfElements(same), kFloat64).found);
}

TEST(CompareElementsTest, SignedZerosDifferByTheirBytes) {
  std::vector<double> recorded{0.0};
  std::vector<double> live{-0.0};
  const digest::ElementDifference difference =
      digest::CompareElements(BytesOfElements(recorded), BytesOfElements(live), kFloat64);
  ASSERT_TRUE(difference.found);
  EXPECT_EQ(difference.a, "0");
  EXPECT_EQ(difference.b, "-0");
}

TEST(ElementTextTest, GivesTheValueBack) {
  const double tenth = 0.1;
  EXPECT_EQ(digest::ElementText(reinterpret_cast<const std::byte*>(&tenth), kFloat64), "0.1");
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(digest::ElementText(reinterpret_cast<const std::byte*>(&lowest), kInt64),
            "-9223372036854775808");
  const uint16_t one_and_a_half = 0x3fc0;
  EXPECT_EQ(digest::ElementText(reinterpret_cast<const std::byte*>(&one_and_a_half), kBfloat16),
            "1.5");
  const uint8_t byte = 0x3f;
  EXPECT_EQ(digest::ElementText(reinterpret_cast<const std::byte*>(&byte), format::kRawBytes),
            "0x3f");
}

}  // namespace
}  // namespace deja::preload
