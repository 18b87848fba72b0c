#include "format/planes/nonzero_elements.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace deja::format {
namespace {

template <typename U>
class NonzeroElementsTest : public testing::Test {};
using Elements = testing::Types<uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(NonzeroElementsTest, Elements);

template <typename U>
std::vector<U> Random(size_t count, double zeros) {
  std::mt19937_64 random(count);
  std::bernoulli_distribution is_zero(zeros);
  std::vector<U> values(count);
  for (U& value : values) value = is_zero(random) ? U{0} : static_cast<U>(random() | 1);
  return values;
}

// Sizes below a vector are the portable loops alone; above, both.
TYPED_TEST(NonzeroElementsTest, GatheredAsAsked) {
  using U = TypeParam;
  for (const double zeros : {0.0, 0.3, 0.97, 1.0}) {
    for (size_t count = 0; count < 300; ++count) {
      const std::vector<U> in = Random<U>(count, zeros);
      std::vector<U> expected;
      std::vector<std::byte> expected_bits(BitmapBytes(count));
      for (size_t i = 0; i < count; ++i) {
        if (in[i] == 0) continue;
        expected.push_back(in[i]);
        expected_bits[i / 8] |= std::byte{1} << (i % 8);
      }
      std::vector<std::byte> bits(BitmapBytes(count), std::byte{0xff});
      std::vector<U> out(count + kNonzeroSlack / sizeof(U));
      const size_t kept = GatherNonzero<U>(reinterpret_cast<const std::byte*>(in.data()), count,
                                           bits.data(), reinterpret_cast<std::byte*>(out.data()));
      ASSERT_EQ(bits, expected_bits) << count;
      ASSERT_EQ(kept, expected.size());
      ASSERT_EQ(CountNonzero(bits), kept);
      std::vector<U> back(count + 1, U{0x5c});
      ScatterNonzero<U>(reinterpret_cast<const std::byte*>(out.data()), bits.data(), count,
                        reinterpret_cast<std::byte*>(back.data()));
      ASSERT_EQ(back.back(), U{0x5c}) << "nothing behind the last";
      back.pop_back();
      ASSERT_EQ(back, in) << count;
      out.resize(kept);
      ASSERT_EQ(out, expected);
    }
  }
}

}  // namespace
}  // namespace deja::format
