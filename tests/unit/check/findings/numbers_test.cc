// nan-origin, replica and corrupt.
#include <gtest/gtest.h>

#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

TEST(NumbersTest, TheFirstNanIsOfTheRankThatMadeIt) {
  MadeJob made(4);
  made.All(AllReduce(8), "train.py", 1, {0, 3});
  for (uint32_t rank = 0; rank < 4; ++rank)
    made.Do(rank, AllReduce(8), "train.py", 2,
            {0, 4, static_cast<uint8_t>(kDone | kNanOut | (rank == 3 ? kNanIn : 0))});
  made.All(AllReduce(8), "train.py", 1, {0, 5, kDone | kNanIn | kNanOut});
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kNanOrigin);
  EXPECT_EQ(finding.blamed, Ranks{3});
  EXPECT_EQ(finding.number, 2u);
  EXPECT_EQ(finding.waiting, (Ranks{0, 1, 2}));
}

TEST(NumbersTest, AReductionMayMakeIt) {
  MadeJob made(2);
  made.All(AllReduce(8), "train.py", 1, {0, 3, kDone | kNanOut});
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kNanOrigin);
  EXPECT_NE(Only(report).sentence.find("the reduction made it"), std::string::npos);
}

TEST(NumbersTest, InfinitiesAloneAreNoFinding) {
  MadeJob made(2);
  made.All(AllReduce(8), "train.py", 1, {0, 3, kDone | kInfIn | kInfOut});
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(NumbersTest, ResultsOfAnAllReduceAreTheSameEverywhere) {
  MadeJob made(3);
  made.All(AllReduce(8), "train.py", 1, {0, 3});
  for (uint32_t rank = 0; rank < 3; ++rank)
    made.Do(rank, AllReduce(8), "train.py", 1, {0, rank == 1 ? 5u : 4u});
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kReplica);
  EXPECT_EQ(finding.blamed, Ranks{1});
  EXPECT_EQ(finding.number, 2u);
}

TEST(NumbersTest, ResultsOfARankWithMissingEventsAreNotCompared) {
  MadeJob made(3);
  for (uint32_t rank = 0; rank < 3; ++rank)
    made.Do(rank, AllReduce(8), "train.py", 1, {0, rank == 1 ? 5u : 4u});
  made[1].is_partial = true;
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(NumbersTest, ResultsOfAReduceNeedNotBe) {
  MadeJob made(3);
  for (uint32_t rank = 0; rank < 3; ++rank)
    made.Do(rank, Of(Operation::kReduce, 8, 0), "train.py", 1, {0, rank + 1});
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(NumbersTest, ABroadcastHasTheBytesOfItsRoot) {
  MadeJob made(2);
  made.Do(0, Of(Operation::kBroadcast, 8, 0), "train.py", 1, {7, 0});
  made.Do(1, Of(Operation::kBroadcast, 8, 0), "train.py", 1, {0, 9});
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kCorrupt);
  EXPECT_EQ(Only(report).blamed, Ranks{1});
}

TEST(NumbersTest, CallsAfterAMismatchAreNotCompared) {
  MadeJob made(2);
  made.Do(0, AllReduce(8), "train.py", 1, {0, 3});
  made.Do(1, AllReduce(6), "train.py", 1, {0, 4});
  made.Do(0, AllReduce(8), "train.py", 2, {0, 5});
  made.Do(1, AllReduce(8), "train.py", 2, {0, 6});
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kSignature);
}

void Checkpoint(MadeJob& made, uint64_t step, const std::vector<uint64_t>& digests) {
  for (uint32_t rank = 0; rank < digests.size(); ++rank)
    made[rank].states.push_back({"weights", step, digests[rank], 2000 * kSecond + step});
}

TEST(NumbersTest, WeightsThatChangedAlikeMustStayAlike) {
  MadeJob made(3);
  Checkpoint(made, 0, {1, 1, 1});
  Checkpoint(made, 10, {2, 2, 2});
  Checkpoint(made, 20, {3, 3, 3});
  Checkpoint(made, 30, {4, 4, 5});
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kReplica);
  EXPECT_EQ(finding.blamed, Ranks{2});
  EXPECT_EQ(finding.step, 30u);
}

TEST(NumbersTest, OneOfManyThatDoesNotChangeAsTheOthers) {
  MadeJob made(4);
  Checkpoint(made, 0, {1, 1, 1, 1});
  Checkpoint(made, 10, {2, 2, 2, 9});
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kReplica);
  EXPECT_EQ(Only(report).blamed, Ranks{3});
}

TEST(NumbersTest, StatesThatBeganAlikeNeedNotStaySo) {
  MadeJob made(3);
  Checkpoint(made, 0, {1, 1, 1});
  Checkpoint(made, 10, {1, 1, 1});
  Checkpoint(made, 20, {2, 3, 4});
  EXPECT_TRUE(made.Checked().findings.empty());
}

}  // namespace
}  // namespace deja::check
