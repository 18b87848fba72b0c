// LiveRank: numbers, rates and the operations that are kept.
#include "cli/top/live_rank.h"

#include <gtest/gtest.h>

#include "tests/unit/cli/top/played_ranks.h"

namespace deja::cli {
namespace {

TEST(LiveRankTest, CountsOperationsBytesAndSteps) {
  PlayedRanks played(2);
  played.Step(0, 10, 3);
  const uint64_t entered = played.Enter(0, 20, 1, 256);
  const LiveRank& rank = played.ranks[0];
  EXPECT_EQ(rank.operations, 1u);
  EXPECT_EQ(rank.bytes, 1024u);
  EXPECT_EQ(rank.step, 3u);
  EXPECT_EQ(rank.comms.at(0).recent.at(1).end_ns, 0u);
  played.Leave(0, 30, entered);
  EXPECT_EQ(rank.comms.at(0).recent.at(1).end_ns, PlayedRanks::Now(30));
}

TEST(LiveRankTest, ARateIsOfWholeSecondsBeforeTheLastEvent) {
  PlayedRanks played(2);
  for (uint64_t i = 0; i < 50; ++i) {  // ten a second
    played.Step(0, i * 100, i);
    played.Leave(0, i * 100 + 1, played.Enter(0, i * 100, i + 1));
  }
  double span = 0;
  const LiveSecond lately = played.ranks[0].Lately(3, span);
  EXPECT_EQ(span, 3);
  EXPECT_EQ(lately.steps, 30u);
  EXPECT_EQ(lately.operations, 30u);
  EXPECT_EQ(lately.bytes, 30u * 1024);
}

TEST(LiveRankTest, AYoungRankHasTheRateOfAllThatItDid) {
  PlayedRanks played(2);
  played.Enter(0, 500, 1);
  double span = 0;
  EXPECT_EQ(played.ranks[0].Lately(10, span).operations, 1u);
  EXPECT_EQ(span, 0.5);
}

TEST(LiveRankTest, KeepsTheLastOperationsAndTheirNumbers) {
  PlayedRanks played(2);
  const uint64_t all = LiveComm::kKept + 40;
  for (uint64_t i = 1; i <= all; ++i) played.Leave(0, i, played.Enter(0, i, i));
  const auto collectives = played.ranks[0].comms.at(0).Collectives();
  ASSERT_EQ(collectives.size(), LiveComm::kKept);
  EXPECT_EQ(collectives.front().first, 41u);
  EXPECT_EQ(collectives.back().first, all);
}

TEST(LiveRankTest, NumbersEndWhereAnotherThreadHasYetToWrite) {
  PlayedRanks played(2);
  played.Enter(0, 1, 1);
  played.Enter(0, 3, 3);
  EXPECT_EQ(played.ranks[0].comms.at(0).Collectives().size(), 1u);
  played.Enter(0, 2, 2);
  EXPECT_EQ(played.ranks[0].comms.at(0).Collectives().size(), 3u);
}

TEST(LiveRankTest, GroupedCallsAreDoneAtTheGroupsEnd) {
  PlayedRanks played(2);
  format::CallEnter enter;
  enter.api = static_cast<uint32_t>(api::NcclApi::ncclAllReduce);
  enter.comm = 1;
  enter.comm_seq = 1;
  enter.group_depth = 1;
  played.Leave(0, 2, played.Take(0, 1, enter));
  EXPECT_EQ(played.ranks[0].comms.at(0).recent.at(1).end_ns, 0u);
  format::CallEnter end;
  end.api = static_cast<uint32_t>(api::NcclApi::ncclGroupEnd);
  played.Leave(0, 4, played.Take(0, 3, end));
  EXPECT_EQ(played.ranks[0].comms.at(0).recent.at(1).end_ns, PlayedRanks::Now(4));
}

}  // namespace
}  // namespace deja::cli
