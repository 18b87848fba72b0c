#include "replayer/turns/turns.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace deja::replayer {
namespace {

// Rank 1 of three.
class TurnsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = testing::TempDir() + "turns-" + std::to_string(getpid());
    unlink(path.c_str());
    auto area = TurnArea::Create(path, 3);
    ASSERT_TRUE(area) << area.error().message;
    area_ = *area;
    ASSERT_TRUE(Turns::Open(("1:" + path).c_str()));
    unlink(path.c_str());
  }
  [[nodiscard]] static bool Waits() { return Turns::OfRank()->WaitsForOthers(); }

  TurnArea area_;
};

TEST_F(TurnsTest, ARunningRankWaitsForNoOther) {
  EXPECT_FALSE(Waits());
  area_.cell(0).place.store(Place::kOut);
  EXPECT_FALSE(Waits());
}

TEST_F(TurnsTest, ARestingRankWaitsForRunningOnes) {
  const Turns::Rest rest;
  EXPECT_TRUE(Waits());
  area_.cell(0).resting.store(1);
  EXPECT_TRUE(Waits()) << "rank 2 runs, or is about to";
  area_.cell(2).ended.store(1);
  EXPECT_FALSE(Waits()) << "all that are there rest";
  area_.cell(0).place.store(Place::kOut);
  EXPECT_TRUE(Waits()) << "it comes back";
  area_.all_still().store(1);
  EXPECT_FALSE(Waits()) << "it was back, for nothing";
}

TEST_F(TurnsTest, ASwappedOutRankWaitsForItsTurn) {
  area_.cell(1).place.store(Place::kOut);
  EXPECT_TRUE(Waits());
  area_.all_still().store(1);
  EXPECT_FALSE(Waits());
  area_.cell(1).wants_in.store(1);
  EXPECT_TRUE(Waits());
  area_.cell(1).wants_in.store(0);
  area_.cell(1).place.store(Place::kIn);
  area_.cell(1).asks.store(1);
  EXPECT_TRUE(Waits()) << "for memory";
}

TEST_F(TurnsTest, NoRankIsAskedForRoomWhereDevicesAreNotShared) {
  EXPECT_EQ(Turns::Get(), nullptr);
  area_.schedules().store(1);
  EXPECT_EQ(Turns::Get(), Turns::OfRank());
}

}  // namespace
}  // namespace deja::replayer
