#include "check/evidence/job.h"

#include <gtest/gtest.h>

#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

TEST(JobTest, ListsOfRanksAreRanges) {
  EXPECT_EQ(RanksText(Ranks{2}), "rank 2");
  EXPECT_EQ(RanksText(Ranks{0, 1, 2, 3, 7}), "ranks 0-3,7");
  EXPECT_EQ(RanksText(Ranks{1, 3, 5}), "ranks 1,3,5");
}

TEST(JobTest, PartsOfTheJobAreNamedByTheirRanks) {
  MadeJob made(4);
  made.AddComm(0x1, {0, 3});
  made.AddComm(0x2, {1, 2});
  const Job job = made.Made();
  ASSERT_EQ(job.communicators.size(), 3u);
  EXPECT_EQ(job.NameOf(job.communicators[0]), "comm 0");
  EXPECT_EQ(job.NameOf(job.communicators[1]), "comm 1 of ranks 0,3");
  EXPECT_EQ(job.NameOf(job.communicators[2]), "comm 1 of ranks 1-2");
}

// Two groups under one name: who is in which is not recorded.
TEST(JobTest, OneNameWithTwoFirstRanksIsNotOneCommunicator) {
  MadeJob made(4);
  made.AddComm(0x1, {0, 3});
  made.AddComm(0x1, {1, 2});
  made.Do(0, AllReduce(8), "a.py", 1, {}, 1);
  made.Do(3, AllReduce(8), "a.py", 1, {}, 1);
  made.Do(1, AllReduce(9), "a.py", 2, {}, 1);
  made.Do(2, AllReduce(9), "a.py", 2, {}, 1);
  const Job job = made.Made();
  ASSERT_EQ(job.communicators.size(), 2u);
  EXPECT_TRUE(job.communicators[1].is_ambiguous);
  const Report report = made.Checked();
  EXPECT_TRUE(report.findings.empty());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("several communicators have one name"), std::string::npos);
}

TEST(JobTest, AnIdThatIsUsedAgainIsAnotherCommunicator) {
  MadeJob made(2);
  made.AddComm(0xa11, {0, 1});
  const Job job = made.Made();
  ASSERT_EQ(job.communicators.size(), 2u);
  EXPECT_TRUE(job.communicators[0].IsWhole());
  EXPECT_TRUE(job.communicators[1].IsWhole());
}

TEST(JobTest, ANewcomerKnowsAGrownCommunicatorByAnotherHash) {
  MadeJob made(3);
  made.AddComm(0x5, {0, 1});
  for (const uint32_t rank : {0, 1}) {
    made[rank].comms[1].nranks = 3;
    made[rank].comms[1].joined_as = rank == 0 ? 0x6 : 0;
  }
  CommSummary joined;
  joined.number = 1;
  joined.hash = 0x6;
  joined.rank = 2;
  joined.nranks = 3;
  made[2].comms.push_back(joined);
  const Job job = made.Made();
  ASSERT_EQ(job.communicators.size(), 2u);
  EXPECT_EQ(job.communicators[1].members.size(), 3u);
  EXPECT_TRUE(job.communicators[1].IsWhole());
}

}  // namespace
}  // namespace deja::check
