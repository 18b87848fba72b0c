#include "cli/job_story.h"

#include <gtest/gtest.h>

namespace deja::cli {
namespace {

RankStory StoryAt(uint64_t seq, bool inside) {
  RankStory story;
  CommStory& comm = story.comms[0];
  comm.hash = 0xabc;
  comm.nranks = 4;
  comm.last_seq = seq;
  CallStory call;
  call.name = "AllReduce";
  call.comm = 0;
  call.comm_seq = seq;
  comm.last_call = call;
  if (inside) story.open_calls.push_back(call);
  return story;
}

std::vector<CommStanding> Uneven(const std::vector<RankStory>& stories) {
  std::vector<RankOfJob> ranks;
  for (size_t i = 0; i < stories.size(); ++i)
    ranks.push_back({static_cast<uint32_t>(i), &stories[i]});
  Symbolizer symbolizer;
  return UnevenComms(ranks, symbolizer);
}

TEST(JobStory, SaysNothingWhenAllCameToTheSameEnd) {
  EXPECT_TRUE(Uneven({StoryAt(7, false), StoryAt(7, false)}).empty());
}

TEST(JobStory, NamesWhoIsInsideAndWhoNeverCame) {
  auto uneven =
      Uneven({StoryAt(412, true), StoryAt(412, true), StoryAt(411, false), StoryAt(412, true)});
  ASSERT_EQ(uneven.size(), 1u);
  EXPECT_EQ(uneven[0].Describe(),
            "comm 0: ranks 0, 1 and 3 entered AllReduce #412 and never left; rank 2 never entered "
            "it: its last "
            "was AllReduce #411");
}

TEST(JobStory, TellsThoseWhoLeftFromThoseWhoDidNot) {
  auto uneven = Uneven({StoryAt(9, true), StoryAt(9, false)});
  ASSERT_EQ(uneven.size(), 1u);
  EXPECT_EQ(uneven[0].Describe(),
            "comm 0: rank 0 entered AllReduce #9 and never left; rank 1 left it");
}

TEST(JobStory, KnowsARankThatIsStuckEarlier) {
  auto uneven = Uneven({StoryAt(9, false), StoryAt(4, true)});
  ASSERT_EQ(uneven.size(), 1u);
  EXPECT_EQ(uneven[0].Describe(),
            "comm 0: rank 0 came to AllReduce #9; rank 1 is still in AllReduce #4");
}

TEST(JobStory, KnowsAGrownCommunicatorByBothItsNames) {
  RankStory old = StoryAt(3, false);
  old.comms[0].joined_as = 0xdef;
  RankStory newcomer = StoryAt(3, false);
  newcomer.comms[0].hash = 0xdef;
  EXPECT_TRUE(Uneven({old, StoryAt(3, false), newcomer}).empty());
  newcomer.comms[0].last_seq = 2;
  newcomer.comms[0].last_call->comm_seq = 2;
  auto uneven = Uneven({newcomer, old, StoryAt(3, false)});
  ASSERT_EQ(uneven.size(), 1u);
  EXPECT_EQ(uneven[0].hash, 0xabcu);
  EXPECT_EQ(uneven[0].Describe(),
            "comm 0: ranks 1 and 2 came to AllReduce #3; rank 0 never entered it: its last was "
            "AllReduce #2");
}

}  // namespace
}  // namespace deja::cli
