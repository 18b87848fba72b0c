// For how long nothing has moved, with time that passes faster.
#include "replayer/meet/stillness.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/temp_dir.h"

namespace deja::replayer {
namespace {

class StillnessTest : public testing::Test {
 protected:
  void SetUp() override { Stillness::SetHaste(100); }
  void TearDown() override { Stillness::SetHaste(0); }
  static void Look(Stillness& still) {
    while (!still.IsTimeToLook()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  TempDir scratch_;
};

TEST_F(StillnessTest, ItIsReportedOnceAndEndsLater) {
  Stillness still(scratch_.path(), nullptr);
  EXPECT_FALSE(still.IsTimeToTell());
  Look(still);
  EXPECT_TRUE(still.IsTimeToTell());
  EXPECT_FALSE(still.IsTimeToTell());
  EXPECT_FALSE(still.IsTimeToGiveUp()) << "one look counts for little";
  Look(still);
  Look(still);
  EXPECT_TRUE(still.IsTimeToGiveUp());
}

TEST_F(StillnessTest, AMoveBeginsItAgain) {
  Stillness still(scratch_.path(), nullptr);
  Look(still);
  EXPECT_GE(still.ns(), Stillness::kTellNs);
  still.SetMoved();
  EXPECT_EQ(still.ns(), 0u);
  EXPECT_FALSE(still.IsTimeToTell());
}

}  // namespace
}  // namespace deja::replayer
