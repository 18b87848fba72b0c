#include "preload/meet/shared_moves.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace deja::preload {
namespace {

constexpr uint64_t kManyPaths = 1 << 14;  // as many as are told apart

TEST(SharedMovesTest, PathsAreCountedApartWhateverTheirKeys) {
  const uint64_t key = PathKey("/data/train.bin");
  const uint64_t alike = key + 2 * kManyPaths;
  EXPECT_EQ(CountOpen(key), 0u);
  EXPECT_EQ(CountOpen(alike), 0u);
  EXPECT_EQ(CountOpen(key), 1u);
  EXPECT_EQ(CountOpen(alike), 1u);
  EXPECT_EQ(CountOpen(key), 2u);
}

// A replay opens modules that a recording does not count.
TEST(SharedMovesTest, OtherPathsChangeNoCount) {
  EXPECT_EQ(CountOpen(PathKey("/data/eval.bin")), 0u);
  for (int i = 0; i < 3000; ++i) CountOpen(PathKey("/lib/module" + std::to_string(i) + ".py"));
  EXPECT_EQ(CountOpen(PathKey("/data/eval.bin")), 1u);
  EXPECT_EQ(CountOpen(PathKey("/data/other.bin")), 0u);
}

TEST(SharedMovesTest, MorePathsThanAreToldApart) {
  for (uint64_t i = 0; i < 2 * kManyPaths; ++i) CountOpen(PathKey("/many/" + std::to_string(i)));
  EXPECT_EQ(CountOpen(PathKey("/many/too")), 0u);
}

}  // namespace
}  // namespace deja::preload
