#include "check/findings/fold.h"

#include <gtest/gtest.h>

#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

Finding At(Kind kind, uint64_t time_ns, Ranks blamed = {1}) {
  Finding finding;
  finding.kind = kind;
  finding.time_ns = time_ns;
  finding.blamed = std::move(blamed);
  finding.sentence = std::string(NameOf(kind));
  return finding;
}

TEST(FoldTest, ADifferenceAfterRanksHavePartedIsAConsequence) {
  const auto folded =
      Fold({At(Kind::kMissing, 30, {2}), At(Kind::kReplica, 40), At(Kind::kOrder, 10)});
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded[0].kind, Kind::kOrder);
  EXPECT_EQ(folded[0].consequences.size(), 2u);
}

TEST(FoldTest, AnEarlierFindingIsACauseOfItsOwn) {
  const auto folded = Fold({At(Kind::kOrder, 20), At(Kind::kNanOrigin, 10)});
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_EQ(folded[0].kind, Kind::kNanOrigin);
}

TEST(FoldTest, TheEndOfARunWithNansFollowsFromThem) {
  const auto folded = Fold({At(Kind::kNanOrigin, 10, {3}), At(Kind::kLeftEarly, 20, {0})});
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded[0].kind, Kind::kNanOrigin);
}

TEST(FoldTest, ACycleIsWhyItsRanksAreMissing) {
  const auto folded =
      Fold({At(Kind::kMissing, 9, {0}), At(Kind::kMissing, 10, {1}), At(Kind::kCycle, 11, {0, 1})});
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded[0].kind, Kind::kCycle);
  EXPECT_EQ(folded[0].consequences.size(), 2u);
}

}  // namespace
}  // namespace deja::check
