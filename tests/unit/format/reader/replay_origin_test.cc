#include "format/reader/replay_origin.h"

#include <gtest/gtest.h>

namespace deja::format {
namespace {

TEST(ReplayOriginTest, IsReadAsItWasWritten) {
  ReplayOrigin origin;
  origin.trace = "/data/my runs/step=3 from-step=9/run.deja";
  origin.job_id = "00112233445566778899aabbccddeeff";
  origin.attempt = 2;
  const auto from_start = ParseReplayOrigin(origin.Write());
  ASSERT_TRUE(from_start);
  EXPECT_EQ(from_start->trace, origin.trace);
  EXPECT_EQ(from_start->job_id, origin.job_id);
  EXPECT_EQ(from_start->attempt, 2u);
  EXPECT_FALSE(from_start->from_step);
  EXPECT_FALSE(from_start->skipped.Has(1));

  origin.from_step = 40;
  origin.skipped = {17, 1234567890123};
  const auto late = ParseReplayOrigin(origin.Write());
  ASSERT_TRUE(late);
  EXPECT_EQ(late->from_step, 40u);
  EXPECT_FALSE(late->skipped.Has(16));
  EXPECT_TRUE(late->skipped.Has(17));
  EXPECT_TRUE(late->skipped.Has(1234567890123));
  EXPECT_FALSE(late->skipped.Has(1234567890124));
}

TEST(ReplayOriginTest, OtherNotesAreNone) {
  EXPECT_FALSE(ParseReplayOrigin(""));
  EXPECT_FALSE(ParseReplayOrigin("epoch 3"));
  EXPECT_FALSE(ParseReplayOrigin("deja-replay-of"));
  const auto damaged = ParseReplayOrigin("deja-replay-of job= from-step=x skipped=1- trace=");
  ASSERT_TRUE(damaged);
  EXPECT_FALSE(damaged->from_step);
  EXPECT_FALSE(damaged->skipped.Has(1));
}

}  // namespace
}  // namespace deja::format
