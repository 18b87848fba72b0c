// signature and order: what ranks call at one number.
#include <gtest/gtest.h>

#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

TEST(CollectivesTest, RanksThatAgreeGiveNoFinding) {
  MadeJob made(4);
  for (int i = 0; i < 100; ++i) made.All(AllReduce(10), "train.py", 55, {1, 2});
  EXPECT_TRUE(made.Checked().findings.empty());
  EXPECT_TRUE(made.Checked().notes.empty());
}

// if rank == 0: broadcast(mine) else: broadcast(theirs)
TEST(CollectivesTest, OtherPlacesAreNoDifference) {
  MadeJob made(3);
  for (int i = 0; i < 10; ++i) {
    made.Do(0, Of(Operation::kBroadcast, 8, 0), "a.py", 10, {5, 5});
    for (const uint32_t rank : {1, 2})
      made.Do(rank, Of(Operation::kBroadcast, 8, 0), "a.py", 12, {0, 5});
  }
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(CollectivesTest, SubGroupsAreNotComparedWithEachOther) {
  MadeJob made(4);
  made.AddComm(0x1, {0, 3});
  made.AddComm(0x2, {1, 2});
  for (const uint32_t rank : {0, 3}) made.Do(rank, AllReduce(8), "a.py", 1, {}, 1);
  for (const uint32_t rank : {1, 2}) made.Do(rank, AllReduce(9), "a.py", 2, {}, 1);
  made.All(AllReduce(5), "a.py", 3);
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(CollectivesTest, AnotherTypeIsASignature) {
  MadeJob made(4);
  made.All(AllReduce(2), "metrics.py", 80);
  Signature wide = AllReduce(2);
  wide.dtype = 8;
  for (uint32_t rank = 0; rank < 4; ++rank)
    made.Do(rank, rank == 2 ? wide : AllReduce(2), "metrics.py", 88);
  made.All(AllReduce(2), "metrics.py", 80);
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kSignature);
  EXPECT_EQ(finding.blamed, Ranks{2});
  EXPECT_EQ(finding.waiting, (Ranks{0, 1, 3}));
  EXPECT_EQ(finding.number, 2u);
  EXPECT_EQ(finding.sentence,
            "at collective 2 of comm 0, rank 2 called AllReduce float64[2] sum at metrics.py:88 in "
            "f, ranks 0-1,3 AllReduce float32[2] sum at metrics.py:88 in f: dtype differs");
  ASSERT_TRUE(finding.agreed);
  EXPECT_EQ(finding.agreed->what, "AllReduce float32[2] sum #1");
  EXPECT_EQ(finding.next.front(), "show RUN --rank 2 --comm 0 --seq 1-2 --stacks");
}

TEST(CollectivesTest, TheFirstOfManyMismatchesIsNamed) {
  MadeJob made(3);
  made.All(AllReduce(8), "a.py", 1);
  for (int i = 0; i < 4; ++i)
    for (uint32_t rank = 0; rank < 3; ++rank)
      made.Do(rank, AllReduce(rank == 1 ? 6 : 8), "a.py", 2);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kSignature);
  EXPECT_EQ(Only(report).number, 2u);
}

TEST(CollectivesTest, EveryRankMayHaveAnotherCount) {
  MadeJob made(16);
  for (uint32_t rank = 0; rank < 16; ++rank) made.Do(rank, AllReduce(100 + rank), "a.py", 1);
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kSignature);
  EXPECT_EQ(finding.blamed.size(), 15u);
  EXPECT_NE(finding.sentence.find("11 more differ"), std::string::npos) << finding.sentence;
}

TEST(CollectivesTest, OneCallMoreIsOneFinding) {
  MadeJob made(4);
  for (int i = 0; i < 50; ++i) {
    made.All(AllReduce(100), "train.py", 55);
    if (i == 9) made.Do(1, Of(Operation::kAllGather, 4), "metrics.py", 88);
  }
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kOrder);
  EXPECT_EQ(finding.blamed, Ranks{1});
  EXPECT_EQ(finding.number, 11u);
  EXPECT_NE(finding.sentence.find("rank 1 made one AllGather float32[4] more on comm 0 than ranks "
                                  "0,2-3: #11 at metrics.py:88"),
            std::string::npos)
      << finding.sentence;
}

TEST(CollectivesTest, ALeftOutCallOfAStepIsNamedAlsoWhenNothingFollows) {
  MadeJob made(4);
  for (uint64_t step = 0; step < 3; ++step) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      made.Step(rank, step);
      made.Do(rank, AllReduce(100), "reducer.cc", 73);
      if (step < 2 || rank != 2) made.Do(rank, AllReduce(50), "reducer.cc", 81);
    }
  }
  made.Step(2, 3);
  made.Do(2, AllReduce(100), "reducer.cc", 73, {0, 0, 0});
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kOrder);
  EXPECT_EQ(finding.blamed, Ranks{2});
  EXPECT_EQ(finding.step, 2u);
  EXPECT_NE(finding.sentence.find("rank 2 left AllReduce float32[50] sum #6 on comm 0 at "
                                  "reducer.cc:81 in f out in step 2"),
            std::string::npos)
      << finding.sentence;
}

TEST(CollectivesTest, TwoThreadsOnOneCommunicator) {
  MadeJob made(2);
  for (int i = 0; i < 3; ++i) {
    made.All(Barrier(), "manager.py", 218, {0, 0, kDone, 0});
    made.All(Of(Operation::kAllGather, 9), "saver.py", 7, {0, 0, kDone, 4});
  }
  made.Do(0, Barrier(), "manager.py", 218, {0, 0, 0, 0});
  made.Do(1, Of(Operation::kAllGather, 9), "saver.py", 7, {0, 0, 0, 4});
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kOrder);
  EXPECT_NE(finding.sentence.find("two threads use comm 0"), std::string::npos);
}

TEST(CollectivesTest, ARankThatGoesRoundTheLoopOnceMore) {
  MadeJob made(4);
  for (int i = 0; i < 5; ++i) made.All(AllReduce(100), "train.py", 55);
  made.Do(0, AllReduce(100), "train.py", 55, {0, 0, 0});
  for (const uint32_t rank : {1, 2, 3}) made.Do(rank, Barrier(), "train.py", 70, {0, 0, 0});
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kMissing);
  EXPECT_EQ(finding.blamed, Ranks{0});
  EXPECT_NE(finding.sentence.find("ranks 1-3 never entered AllReduce float32[100] sum #6"),
            std::string::npos)
      << finding.sentence;
}

TEST(CollectivesTest, ARankThatIsAheadInTheLoop) {
  MadeJob made(4);
  for (int i = 0; i < 5; ++i) {
    made.All(Of(Operation::kAllGather, 4), "loop.py", 10);
    made.All(AllReduce(100), "loop.py", 12);
  }
  made.All(Of(Operation::kAllGather, 4), "loop.py", 10);
  for (uint32_t rank = 0; rank < 4; ++rank)
    made.Do(rank, rank == 1 ? Of(Operation::kAllGather, 4) : AllReduce(100), "loop.py",
            rank == 1 ? 10 : 12, {0, 0, 0});
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kOrder);
  EXPECT_EQ(finding.blamed, Ranks{1});
  EXPECT_EQ(finding.number, 12u);
  EXPECT_NE(finding.sentence.find("it left that out, or made its own once more"), std::string::npos)
      << finding.sentence;
}

TEST(CollectivesTest, TheSamePlaceWithTheArgumentsOfBeforeIsASignature) {
  MadeJob made(3);
  for (int i = 0; i < 5; ++i) made.All(AllReduce(3916), "sync.py", 4);
  for (uint32_t rank = 0; rank < 3; ++rank)
    made.Do(rank, AllReduce(rank == 2 ? 3916 : 2867), "sync.py", 4);
  for (int i = 0; i < 5; ++i) made.All(AllReduce(2867), "sync.py", 4);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kSignature);
  EXPECT_EQ(Only(report).blamed, Ranks{2});
  EXPECT_EQ(Only(report).number, 6u);
}

TEST(CollectivesTest, RanksWithMissingEventsAreNotCompared) {
  MadeJob made(3);
  made.All(AllReduce(8), "a.py", 1);
  made.Do(0, AllReduce(8), "a.py", 2);
  made.Do(1, AllReduce(8), "a.py", 2);
  made.Do(2, AllReduce(9), "a.py", 3);
  made[2].is_partial = true;
  made[2].unknown = "7 events are missing";
  const Report report = made.Checked();
  EXPECT_TRUE(report.findings.empty());
  EXPECT_TRUE(report.is_damaged);
  ASSERT_FALSE(report.notes.empty());
  EXPECT_NE(report.notes.back().find("rank 2: events are missing"), std::string::npos);
}

}  // namespace
}  // namespace deja::check
