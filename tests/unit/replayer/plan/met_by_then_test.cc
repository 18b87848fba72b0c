#include "replayer/plan/met_by_then.h"

#include <gtest/gtest.h>

namespace deja::replayer {
namespace {

using Meeting = MetByThen::Meeting;

class MetByThenTest : public testing::Test {
 protected:
  // Returns its position among the inputs.
  uint32_t Meet(uint32_t thread, Meeting meeting, uint64_t time_ns) {
    met_.AddMeeting(thread, meeting, inputs_, time_ns);
    return inputs_++;
  }

  MetByThen met_;
  uint32_t inputs_ = 0;
};

TEST_F(MetByThenTest, CountsWhatTheOthersHadMetWhenAnEndWasHeardOf) {
  Meet(0, Meeting::kOther, 10);
  Meet(0, Meeting::kFound, 20);
  Meet(0, Meeting::kOther, 40);
  Meet(1, Meeting::kWrite, 35);
  Meet(2, Meeting::kWrite, 15);
  met_.AddEnd(1, 77, 30);
  met_.AddEnd(1, 77, 50);
  met_.AddEnd(2, 78, 5);
  EXPECT_EQ(met_.AtEnd(1, 77, 0), (MeetingsByThread{{0, 2}, {2, 1}}));
  EXPECT_EQ(met_.AtEnd(1, 77, 1), (MeetingsByThread{{0, 3}, {2, 1}}));
  EXPECT_EQ(met_.AtEnd(2, 78, 0), MeetingsByThread{});
}

TEST_F(MetByThenTest, AnEndThatWasNotRecordedWaitsForNothing) {
  Meet(0, Meeting::kOther, 10);
  met_.AddEnd(1, 77, 30);
  EXPECT_EQ(met_.AtEnd(1, 77, 1), MeetingsByThread{});
  EXPECT_EQ(met_.AtEnd(1, 78, 0), MeetingsByThread{});
  EXPECT_EQ(met_.AtEnd(2, 77, 0), MeetingsByThread{});
}

TEST_F(MetByThenTest, APollFindsWhatWasWrittenSinceTheOneBefore) {
  const uint32_t first = Meet(0, Meeting::kFound, 20);
  const uint32_t vain = Meet(0, Meeting::kOther, 35);
  const uint32_t second = Meet(0, Meeting::kFound, 40);
  const uint32_t third = Meet(0, Meeting::kFound, 50);
  Meet(1, Meeting::kOther, 5);
  Meet(1, Meeting::kWrite, 10);
  Meet(1, Meeting::kWrite, 30);
  Meet(1, Meeting::kWrite, 60);
  Meet(2, Meeting::kWrite, 40);
  EXPECT_EQ(met_.AtPoll(0, first), (MeetingsByThread{{1, 2}}));
  EXPECT_EQ(met_.AtPoll(0, second), (MeetingsByThread{{1, 3}, {2, 1}}));
  EXPECT_EQ(met_.AtPoll(0, vain), MeetingsByThread{});
  EXPECT_EQ(met_.AtPoll(0, third), MeetingsByThread{});
  EXPECT_EQ(met_.AtPoll(3, first), MeetingsByThread{});
}

TEST_F(MetByThenTest, APollDoesNotWaitForItsOwnThread) {
  Meet(0, Meeting::kWrite, 10);
  const uint32_t poll = Meet(0, Meeting::kFound, 20);
  EXPECT_EQ(met_.AtPoll(0, poll), MeetingsByThread{});
}

}  // namespace
}  // namespace deja::replayer
