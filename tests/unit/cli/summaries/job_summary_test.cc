#include "cli/summaries/job_summary.h"

#include <gtest/gtest.h>

namespace deja::cli {
namespace {

RankSummary SummaryAt(uint64_t seq, bool inside) {
  RankSummary summary;
  CommSummary& comm = summary.comms[0];
  comm.hash = 0xabc;
  comm.nranks = 4;
  comm.last_seq = seq;
  CallSummary call;
  call.name = "AllReduce";
  call.comm = 0;
  call.comm_seq = seq;
  comm.last_call = call;
  if (inside) summary.open_calls.push_back(call);
  return summary;
}

std::vector<CommStanding> Uneven(const std::vector<RankSummary>& stories) {
  std::vector<RankOfJob> ranks;
  for (size_t i = 0; i < stories.size(); ++i)
    ranks.push_back({static_cast<uint32_t>(i), &stories[i]});
  Symbolizer symbolizer;
  return UnevenComms(ranks, symbolizer);
}

TEST(JobSummary, SaysNothingWhenAllReachedTheSameEnd) {
  EXPECT_TRUE(Uneven({SummaryAt(7, false), SummaryAt(7, false)}).empty());
}

TEST(JobSummary, NamesTheRanksInsideAndTheMissingOnes) {
  auto uneven = Uneven(
      {SummaryAt(412, true), SummaryAt(412, true), SummaryAt(411, false), SummaryAt(412, true)});
  ASSERT_EQ(uneven.size(), 1u);
  EXPECT_EQ(uneven[0].Describe(),
            "comm 0: ranks 0, 1 and 3 entered AllReduce #412 and never left; rank 2 never entered "
            "it: its last "
            "was AllReduce #411");
}

TEST(JobSummary, DistinguishesRanksThatLeftFromThoseInside) {
  auto uneven = Uneven({SummaryAt(9, true), SummaryAt(9, false)});
  ASSERT_EQ(uneven.size(), 1u);
  EXPECT_EQ(uneven[0].Describe(),
            "comm 0: rank 0 entered AllReduce #9 and never left; rank 1 left it");
}

TEST(JobSummary, KnowsARankThatIsStuckEarlier) {
  auto uneven = Uneven({SummaryAt(9, false), SummaryAt(4, true)});
  ASSERT_EQ(uneven.size(), 1u);
  EXPECT_EQ(uneven[0].Describe(),
            "comm 0: rank 0 reached AllReduce #9; rank 1 is still in AllReduce #4");
}

TEST(JobSummary, KnowsAGrownCommunicatorByBothItsNames) {
  RankSummary old = SummaryAt(3, false);
  old.comms[0].joined_as = 0xdef;
  RankSummary newcomer = SummaryAt(3, false);
  newcomer.comms[0].hash = 0xdef;
  EXPECT_TRUE(Uneven({old, SummaryAt(3, false), newcomer}).empty());
  newcomer.comms[0].last_seq = 2;
  newcomer.comms[0].last_call->comm_seq = 2;
  auto uneven = Uneven({newcomer, old, SummaryAt(3, false)});
  ASSERT_EQ(uneven.size(), 1u);
  EXPECT_EQ(uneven[0].hash, 0xabcu);
  EXPECT_EQ(uneven[0].Describe(),
            "comm 0: ranks 1 and 2 reached AllReduce #3; rank 0 never entered it: its last was "
            "AllReduce #2");
}

}  // namespace
}  // namespace deja::cli
