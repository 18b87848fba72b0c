#include "cli/output.h"

#include <gtest/gtest.h>

namespace deja::cli {
namespace {

TEST(Output, BytesInPowersOfAThousand) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1.00 kB");
  EXPECT_EQ(HumanBytes(12345), "12.3 kB");
  EXPECT_EQ(HumanBytes(999900), "1.00 MB");
  EXPECT_EQ(HumanBytes(123456789), "123 MB");
}

TEST(Output, CountsWithSeparators) {
  EXPECT_EQ(HumanCount(7), "7");
  EXPECT_EQ(HumanCount(1234), "1,234");
  EXPECT_EQ(HumanCount(1234567), "1,234,567");
}

TEST(Output, DurationsInAFittingUnit) {
  EXPECT_EQ(HumanDuration(1500), "1.5 us");
  EXPECT_EQ(HumanDuration(2'500'000), "2.50 ms");
  EXPECT_EQ(HumanDuration(2'410'000'000), "2.41 s");
  EXPECT_EQ(HumanDuration(125'000'000'000), "2m 05s");
  EXPECT_EQ(HumanDuration(3'725'000'000'000), "1h 02m 05s");
}

}  // namespace
}  // namespace deja::cli
