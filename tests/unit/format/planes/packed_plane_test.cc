#include "format/planes/packed_plane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace deja::format {
namespace {

using Bytes = std::vector<std::byte>;

// Mostly of a few neighbours, like exponents.
Bytes Exponents(size_t size, double others, unsigned seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) {
    const bool other = std::uniform_real_distribution<>()(random) < others;
    byte = static_cast<std::byte>(other ? random() : 117 + std::min<unsigned>(random() % 9, 6));
  }
  return bytes;
}

class PackedPlaneTest : public ::testing::TestWithParam<PackedVectors> {
 protected:
  void SetUp() override {
    if (GetParam() > BestPackedVectors()) GTEST_SKIP() << "this processor has no such vectors";
  }
  static Bytes Pack(const Bytes& plane, PackedRange range, PackedVectors vectors = GetParam()) {
    Bytes out(plane.size() * 2 + 200);
    out.resize(PackPlane(plane, range, out, vectors));
    return out;
  }
  static bool Unpacks(const Bytes& in, uint8_t first, Bytes& plane) {
    return UnpackPlane(in, first, plane, GetParam()).has_value();
  }
};

TEST_P(PackedPlaneTest, ComesBackAndIsTheSameWithAllVectors) {
  for (const size_t size : {0, 1, 7, 63, 64, 65, 127, 128, 1000, 4096, 100'001}) {
    for (unsigned bits = 1; bits <= kMostPackedBits; ++bits) {
      for (const double others : {0.0, 0.03, 0.9}) {
        const Bytes plane = Exponents(size, others, bits);
        for (const uint8_t first : {117, 0, 250}) {
          const PackedRange range{first, bits};
          const Bytes packed = Pack(plane, range);
          ASSERT_FALSE(packed.empty());
          EXPECT_EQ(packed, Pack(plane, range, PackedVectors::kNone)) << size << ' ' << bits;
          Bytes back(size);
          ASSERT_TRUE(Unpacks(packed, first, back)) << size << ' ' << bits;
          EXPECT_EQ(back, plane) << size << ' ' << bits;
        }
      }
    }
  }
}

TEST_P(PackedPlaneTest, WritesNothingAfterItsRoom) {
  const Bytes plane = Exponents(10'000, 0.5);
  const PackedRange range{117, 3};
  const size_t size = Pack(plane, range).size();
  for (const size_t room : {size_t{0}, size_t{1}, size / 2, size - 1, size}) {
    Bytes out(room + 100, std::byte{0xa5});
    EXPECT_EQ(PackPlane(plane, range, std::span(out).first(room), GetParam()),
              room == size ? size : 0);
    EXPECT_EQ(std::count(out.begin() + static_cast<ptrdiff_t>(room), out.end(), std::byte{0xa5}),
              100);
  }
}

TEST_P(PackedPlaneTest, DamageIsFound) {
  const Bytes plane = Exponents(1000, 0.05);
  const Bytes packed = Pack(plane, {117, 3});
  Bytes back(plane.size());
  for (size_t size = 0; size < packed.size(); ++size) {
    const Bytes cut(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(Unpacks(cut, 117, back)) << size;
  }
  Bytes longer = packed;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(Unpacks(longer, 117, back));
  for (const int bits : {0, 1, 2, 4, 5, 255}) {
    Bytes other = packed;
    other[0] = static_cast<std::byte>(bits);
    EXPECT_FALSE(Unpacks(other, 117, back)) << bits;
  }
  // The last group has 40 bytes of 64.
  Bytes behind = packed;
  behind[1 + 15 * 3 * 8 + 7] = std::byte{1};
  EXPECT_FALSE(Unpacks(behind, 117, back));
  // Any other damage changes bytes of the plane and nothing else.
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    Bytes other = packed;
    for (int j = 0; j < 3; ++j) other[random() % other.size()] ^= std::byte{1} << random() % 8;
    (void)Unpacks(other, 117, back);
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, PackedPlaneTest,
                         ::testing::Values(PackedVectors::kNone, PackedVectors::kAvx2,
                                           PackedVectors::kAvx512));

TEST(PackedRangeTest, IsWhatSavesMost) {
  const Bytes plane = Exponents(200'000, 0.02);
  const PackedRange range = PackedRange::For(plane);
  EXPECT_EQ(range.first, 117);
  EXPECT_EQ(range.bits, 3u);
  Bytes noise(10'000);
  std::mt19937 random(3);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  EXPECT_EQ(PackedRange::For(noise).bits, 0u);
  EXPECT_EQ(PackedRange::For({}).bits, 0u);
  const Bytes same(1000, std::byte{255});
  const PackedRange top = PackedRange::For(same);
  EXPECT_EQ(top.bits, 1u);
  EXPECT_EQ(top.first, 255);
}

}  // namespace
}  // namespace deja::format
