#include "format/planes/byte_planes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

namespace deja::format {
namespace {

template <typename U>
class BytePlanesTest : public testing::Test {};
using Elements = testing::Types<uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(BytePlanesTest, Elements);

TYPED_TEST(BytePlanesTest, PlaneIsByteOfEachElement) {
  using U = TypeParam;
  std::mt19937_64 random(1);
  constexpr std::byte kGuard{0x5c};
  // Around whole vectors and blocks.
  for (const size_t count : {0, 1, 63, 64, 65, 127, 200, 1023, 1024, 1025, 5000}) {
    std::vector<U> in(count);
    for (U& value : in) value = static_cast<U>(random());
    for (const bool rotate : {false, true}) {
      std::vector<std::vector<std::byte>> planes(sizeof(U), std::vector(count + 1, kGuard));
      std::array<std::byte*, kMaxPlanes> to{};
      std::array<const std::byte*, kMaxPlanes> from{};
      for (size_t p = 0; p < sizeof(U); ++p) from[p] = to[p] = planes[p].data();
      SplitPlanes<U>(reinterpret_cast<const std::byte*>(in.data()), count, rotate, to);
      for (size_t p = 0; p < sizeof(U); ++p) {
        for (size_t i = 0; i < count; ++i) {
          const U value = rotate ? std::rotl(in[i], 1) : in[i];
          ASSERT_EQ(planes[p][i], static_cast<std::byte>(value >> (8 * p))) << count << ": " << i;
        }
        ASSERT_EQ(planes[p][count], kGuard);
      }
      std::vector<U> out(count + 1, U{0x5c});
      JoinPlanes<U>(from, count, rotate, reinterpret_cast<std::byte*>(out.data()));
      ASSERT_EQ(out.back(), U{0x5c});
      out.pop_back();
      ASSERT_EQ(out, in) << count;
    }
  }
}

}  // namespace
}  // namespace deja::format
