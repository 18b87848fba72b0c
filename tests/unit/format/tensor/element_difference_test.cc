#include "format/tensor/element_difference.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "format/wire/wire.h"

namespace deja::format {
namespace {

std::vector<std::byte> Noise(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

class EachKind : public ::testing::TestWithParam<DifferenceKind> {};

TEST_P(EachKind, BytesComeBackFromAChain) {
  for (const size_t size : {0u, 1u, 7u, 64u, 1003u}) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::vector<std::byte>> differences;
    for (uint32_t i = 0; i < 5; ++i) {
      bytes.push_back(Noise(size, i));
      differences.emplace_back(size);
      if (i != 0) MakeDifference(GetParam(), bytes[i], bytes[i - 1], differences[i]);
    }
    // From the last one back, as a reader comes by them.
    std::vector<std::byte> out = differences[4];
    for (size_t i = 3; i > 0; --i) JoinDifferences(GetParam(), differences[i], out);
    ApplyDifference(GetParam(), bytes[0], out);
    EXPECT_EQ(out, bytes[4]) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EachKind,
                         ::testing::Values(DifferenceKind{TensorCodec::kDifference, 1},
                                           DifferenceKind{TensorCodec::kDifference, 4},
                                           DifferenceKind{TensorCodec::kElementDifference, 1},
                                           DifferenceKind{TensorCodec::kElementDifference, 2},
                                           DifferenceKind{TensorCodec::kElementDifference, 4},
                                           DifferenceKind{TensorCodec::kElementDifference, 8}));

uint32_t Folded(float now, float before) {
  uint32_t difference = 0;
  const auto bytes_of = [](const float& value) { return std::as_bytes(std::span(&value, 1)); };
  MakeDifference({TensorCodec::kElementDifference, 4}, bytes_of(now), bytes_of(before),
                 std::as_writable_bytes(std::span(&difference, 1)));
  return difference;
}

TEST(ElementDifference, NeighboursDifferByOne) {
  const float two = 2;
  const float below = std::nextafter(two, 0.0f);
  EXPECT_EQ(Folded(two, two), 0u);
  EXPECT_EQ(Folded(two, below), 2u) << "one up, although all bits of the mantissa change";
  EXPECT_EQ(Folded(below, two), 1u);
  EXPECT_EQ(Folded(-two, -below), 1u);
  EXPECT_EQ(Folded(0.0f, -0.0f), 2u);
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Folded(least, -least), 6u);
}

TEST(ElementDifference, SingleBytesAreXored) {
  EXPECT_EQ(DifferenceCodec(1), TensorCodec::kDifference);
  for (const uint32_t size : {2u, 4u, 8u})
    EXPECT_EQ(DifferenceCodec(size), TensorCodec::kElementDifference);
}

}  // namespace
}  // namespace deja::format
