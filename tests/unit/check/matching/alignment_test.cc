#include "check/matching/alignment.h"

#include <gtest/gtest.h>

#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

Alignment AlignRanks(const MadeJob& made, size_t first) {
  const Job job = made.Made();
  return Align(job, job.ranks[0].comms[0].collectives, job.ranks[1].comms[0].collectives, first);
}

TEST(AlignmentTest, ACallMoreIsFoundInFrontOfTheFirstMismatch) {
  MadeJob made(2);
  made.All(AllReduce(100), "train.py", 55);
  made.Do(1, Of(Operation::kAllGather, 4), "metrics.py", 88);
  for (int i = 0; i < 3; ++i) {
    made.All(Of(Operation::kAllGather, 4), "metrics.py", 20);
    made.All(AllReduce(100), "train.py", 55);
  }
  // 1 is an AllGather on both; 2 is the first that does not fit.
  const Alignment found = AlignRanks(made, 2);
  EXPECT_EQ(found.parting, Parting::kExtra);
  EXPECT_EQ(found.b_index, 1u);
  EXPECT_EQ(found.count, 1u);
}

TEST(AlignmentTest, ACallLess) {
  MadeJob made(2);
  for (uint64_t step = 0; step < 6; ++step) {
    made.Step(0, step);
    made.Step(1, step);
    made.All(AllReduce(100), "reducer.cc", 73);
    if (step == 3)
      made.Do(0, AllReduce(50), "reducer.cc", 81);
    else
      made.All(AllReduce(50), "reducer.cc", 81);
  }
  const Alignment found = AlignRanks(made, 7);
  EXPECT_EQ(found.parting, Parting::kLeftOut);
  EXPECT_EQ(found.a_index, 7u);
  EXPECT_EQ(found.count, 1u);
}

TEST(AlignmentTest, OtherArgumentsAreTheSameCall) {
  MadeJob made(2);
  for (int i = 0; i < 4; ++i) {
    made.Do(0, AllReduce(100), "train.py", 55);
    made.Do(1, AllReduce(i == 1 ? 75 : 100), "train.py", 55);
  }
  EXPECT_EQ(AlignRanks(made, 1).parting, Parting::kReplaced);
}

TEST(AlignmentTest, AnotherOrder) {
  MadeJob made(2);
  made.All(AllReduce(1), "a.py", 1);
  made.Do(0, AllReduce(2), "a.py", 2);
  made.Do(0, AllReduce(3), "a.py", 3);
  made.Do(1, AllReduce(3), "a.py", 3);
  made.Do(1, AllReduce(2), "a.py", 2);
  made.All(AllReduce(4), "a.py", 4);
  EXPECT_EQ(AlignRanks(made, 1).parting, Parting::kSwapped);
}

TEST(AlignmentTest, WithoutWhatFollowsNothingIsGuessed) {
  MadeJob made(2);
  made.All(AllReduce(1), "a.py", 1);
  made.Do(0, AllReduce(2), "a.py", 2);
  made.Do(1, Of(Operation::kBroadcast, 1, 0), "b.py", 3);
  EXPECT_EQ(AlignRanks(made, 1).parting, Parting::kReplaced);
}

}  // namespace
}  // namespace deja::check
