#include "replayer/plan/met_by_then.h"

#include <gtest/gtest.h>

#include "api/libc_table.h"

namespace deja::replayer {
namespace {

using api::LibcApi;

class MetByThenTest : public testing::Test {
 protected:
  MetByThenTest() : threads_(3) {
    for (uint32_t i = 0; i < 3; ++i) threads_[i].name = i == 0 ? "0" : "0." + std::to_string(i);
  }

  // Returns its position among the inputs.
  uint32_t Meet(uint32_t thread, LibcApi api, int64_t result, uint64_t time_ns) {
    RecordedInput input;
    input.api = static_cast<uint32_t>(api);
    input.result = result;
    met_.AddMeeting(thread, input, inputs_, time_ns);
    return inputs_++;
  }
  void Finish() { met_.Finish(threads_, at_polls_); }

  MetByThen met_;
  uint32_t inputs_ = 0;
  std::vector<RecordedThread> threads_;
  std::unordered_map<uint32_t, MeetingsByThread> at_polls_;
};

TEST_F(MetByThenTest, CountsWhatTheOthersHadMetWhenAnEndWasHeardOf) {
  Meet(0, LibcApi::kpoll, 0, 10);
  Meet(0, LibcApi::kpoll, 1, 20);
  Meet(0, LibcApi::kpoll, 0, 40);
  Meet(1, LibcApi::ksocketpair, 1, 35);
  Meet(2, LibcApi::ksocketpair, 1, 15);
  met_.AddEnd(1, 77, 30);
  met_.AddEnd(1, 77, 50);
  met_.AddEnd(2, 78, 5);
  Finish();
  const std::vector<MeetingsByThread> of_77{{{0, 2}, {2, 1}}, {{0, 3}, {2, 1}}};
  EXPECT_EQ(threads_[1].met_at_ends.at(77), of_77);
  EXPECT_EQ(threads_[2].met_at_ends.at(78), std::vector<MeetingsByThread>(1));
}

TEST_F(MetByThenTest, LeavesTheFirstThreadAlone) {
  Meet(1, LibcApi::ksocketpair, 1, 10);
  met_.AddEnd(0, 77, 20);
  Finish();
  EXPECT_TRUE(threads_[0].met_at_ends.empty());
}

TEST_F(MetByThenTest, APollFindsWhatWasWrittenSinceTheOneBefore) {
  const uint32_t first = Meet(0, LibcApi::kpoll, 1, 20);
  const uint32_t vain = Meet(0, LibcApi::kpoll, 0, 35);
  const uint32_t second = Meet(0, LibcApi::kpoll, 2, 40);
  const uint32_t third = Meet(0, LibcApi::kpoll, 1, 50);
  Meet(1, LibcApi::kpoll, 0, 5);
  Meet(1, LibcApi::ksocketpair, 1, 10);
  Meet(1, LibcApi::ksocketpair, 1, 30);
  Meet(1, LibcApi::ksocketpair, 1, 60);
  Meet(2, LibcApi::ksocketpair, 1, 40);
  Finish();
  EXPECT_EQ(at_polls_.at(first), (MeetingsByThread{{1, 2}}));
  EXPECT_EQ(at_polls_.at(second), (MeetingsByThread{{1, 3}, {2, 1}}));
  EXPECT_EQ(at_polls_.count(vain) + at_polls_.count(third), 0u);
}

TEST_F(MetByThenTest, APollDoesNotWaitForItsOwnThread) {
  Meet(0, LibcApi::ksocketpair, 1, 10);
  Meet(0, LibcApi::kpoll, 1, 20);
  Finish();
  EXPECT_TRUE(at_polls_.empty());
}

}  // namespace
}  // namespace deja::replayer
