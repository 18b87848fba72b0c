#include "cli/help/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace deja::cli {
namespace {

const std::vector<std::string> kNames = {"doctor", "record", "recover", "replay",
                                         "info",   "pack",   "unpack"};

TEST(NearestNameTest, DistanceCountsSwappedLettersOnce) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("replay", "replay"), 0u);
  EXPECT_EQ(EditDistance("repaly", "replay"), 1u);
  EXPECT_EQ(EditDistance("relay", "replay"), 1u);
  EXPECT_EQ(EditDistance("rexplay", "replay"), 1u);
  EXPECT_EQ(EditDistance("rebly", "replay"), 2u);
}

TEST(NearestNameTest, FindsWhatWasMistyped) {
  EXPECT_EQ(NearestName("repaly", kNames), "replay");
  EXPECT_EQ(NearestName("recrod", kNames), "record");
  EXPECT_EQ(NearestName("inof", kNames), "info");
  EXPECT_EQ(NearestName("unpak", kNames), "unpack");
}

TEST(NearestNameTest, FindsTheOnlyOneThatBeginsLikeThat) {
  EXPECT_EQ(NearestName("doc", kNames), "doctor");
  EXPECT_EQ(NearestName("re", kNames), "");
  EXPECT_EQ(NearestName("d", kNames), "");
}

TEST(NearestNameTest, FindsNothingThatIsNotAlike) {
  EXPECT_EQ(NearestName("foo", kNames), "");
  EXPECT_EQ(NearestName("frobnicate", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName("replay", {}), "");
}

TEST(NearestNameTest, IsAQuestion) {
  EXPECT_EQ(DidYouMean("repaly", kNames), "; did you mean 'replay'?");
  EXPECT_EQ(DidYouMean("foo", kNames), "");
}

}  // namespace
}  // namespace deja::cli
