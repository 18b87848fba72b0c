// Whose turn it is, with ranks that only say what they do and a driver that only counts.
#include "cli/replay/fold/turn_scheduler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace deja::cli {
namespace {

using How = SwapResult::How;
using std::chrono::milliseconds;

constexpr pid_t kFirstPid = 100;

// What it was asked to do, as "out 2", "in 0".
struct Driver {
  std::vector<std::string> done;
  std::vector<SwapResult> next;  // answers other than kDone, the last one first
};

class FakeSwap final : public DeviceSwap {
 public:
  explicit FakeSwap(Driver& driver) : driver_(driver) {}
  SwapResult TakeOut(pid_t process) override { return Do("out ", process); }
  SwapResult BringBack(pid_t process) override { return Do("in ", process); }

 private:
  SwapResult Do(const std::string& what, pid_t process) {
    driver_.done.push_back(what + std::to_string(process - kFirstPid));
    if (driver_.next.empty()) return {};
    SwapResult result = driver_.next.back();
    driver_.next.pop_back();
    return result;
  }
  Driver& driver_;
};

class TurnSchedulerTest : public testing::Test {
 protected:
  void Make(uint32_t ranks, bool can_swap = true, size_t at_once = 0) {
    TurnScheduler::Rules rules;
    rules.at_once = at_once;
    std::string folder = testing::TempDir() + "turns-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    auto area = TurnArea::Create(folder + "/turns", ranks);
    ASSERT_TRUE(area) << area.error().message;
    area_ = *area;
    unlink((folder + "/turns").c_str());
    rmdir(folder.c_str());
    std::vector<uint32_t> numbers;
    for (uint32_t i = 0; i < ranks; ++i) {
      numbers.push_back(i);
      Cell(i).pid.store(static_cast<uint32_t>(kFirstPid) + i);
      Cell(i).devices.store(1);
    }
    scheduler_ = std::make_unique<TurnScheduler>(
        area_, numbers,
        [this, can_swap]() -> Result<std::unique_ptr<DeviceSwap>> {
          if (!can_swap) return Fail(ErrorCode::kNotFound, "the driver is too old");
          return std::make_unique<FakeSwap>(driver_);
        },
        [this](const std::string& text) { said_.push_back(text); }, rules);
  }

  TurnCell& Cell(uint32_t rank) { return area_.cell(rank); }
  void Rest(uint32_t rank) {
    Cell(rank).resting.fetch_add(1);
    Cell(rank).rests.fetch_add(1);
  }
  // True: it may go on; false: it has to wait until it is in.
  bool GoOn(uint32_t rank) {
    Cell(rank).resting.fetch_sub(1);
    Cell(rank).rests.fetch_add(1);
    if (Cell(rank).place.load() == Place::kIn) return true;
    Cell(rank).wants_in.fetch_add(1);
    return false;
  }
  void CameIn(uint32_t rank) { Cell(rank).wants_in.fetch_sub(1); }
  void Ask(uint32_t rank) {
    Cell(rank).answer.store(MemoryAnswer::kNone);
    Cell(rank).asks.fetch_add(1);
  }
  MemoryAnswer TakeAnswer(uint32_t rank) {
    const MemoryAnswer answer = Cell(rank).answer.load();
    if (answer != MemoryAnswer::kNone) Cell(rank).asks.fetch_add(1);
    return answer;
  }
  // Asks again each time that it shall try again, as long as `fails` says so.
  MemoryAnswer AskUntil(uint32_t rank, const std::function<bool()>& fails) {
    for (int i = 0; i < 100; ++i) {
      Ask(rank);
      Settle();
      const MemoryAnswer answer = TakeAnswer(rank);
      if (answer != MemoryAnswer::kTryAgain || !fails()) return answer;
    }
    return MemoryAnswer::kNone;
  }
  void Settle() {
    for (int i = 0; i < 100 && scheduler_->Step(now_); ++i) {
    }
  }
  void Later(milliseconds time) { now_ += time; }
  [[nodiscard]] bool IsIn(uint32_t rank) { return Cell(rank).place.load() == Place::kIn; }
  [[nodiscard]] size_t In() {
    size_t count = 0;
    for (uint32_t i = 0; i < area_.ranks(); ++i) count += IsIn(i) ? 1 : 0;
    return count;
  }

  TurnArea area_;
  Driver driver_;
  std::vector<std::string> said_;
  std::unique_ptr<TurnScheduler> scheduler_;
  TurnScheduler::Clock::time_point now_ = TurnScheduler::Clock::now();
};

TEST_F(TurnSchedulerTest, NothingHappensWhileRanksFit) {
  Make(3);
  Rest(0);
  Settle();
  EXPECT_TRUE(GoOn(0));
  Later(milliseconds(100000));
  Settle();
  EXPECT_TRUE(driver_.done.empty());
  EXPECT_TRUE(said_.empty());
}

TEST_F(TurnSchedulerTest, WaitingRanksMakeRoomTheLongestWaitingFirst) {
  Make(4);
  Rest(2);
  Settle();
  Rest(0);
  Settle();
  EXPECT_EQ(AskUntil(3, [&] { return In() > 3; }), MemoryAnswer::kTryAgain);
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 2"}));
  EXPECT_EQ(AskUntil(3, [&] { return In() > 2; }), MemoryAnswer::kTryAgain);
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 2", "out 0"}));
}

TEST_F(TurnSchedulerTest, RanksComeBackInTheOrderInWhichTheyWantTo) {
  Make(3);
  Rest(0);
  Rest(1);
  ASSERT_EQ(AskUntil(2, [&] { return In() > 1; }), MemoryAnswer::kTryAgain);
  driver_.done.clear();
  // All have reached the collective; what was waited for is there.
  EXPECT_FALSE(GoOn(1));
  Settle();
  EXPECT_FALSE(GoOn(0));
  Settle();
  EXPECT_TRUE(driver_.done.empty()) << "the one that is in has not waited for anything yet";
  Rest(2);
  Settle();
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 2", "in 1"}));
  CameIn(1);
  Rest(1);
  Settle();
  EXPECT_EQ(driver_.done.back(), "in 0");
  EXPECT_EQ(In(), 1U);
}

TEST_F(TurnSchedulerTest, ARankThatHasGoneOnStays) {
  Make(2);
  Rest(0);
  Settle();
  EXPECT_TRUE(GoOn(0));
  EXPECT_EQ(AskUntil(1, [] { return true; }), MemoryAnswer::kNone);
  EXPECT_TRUE(driver_.done.empty());
  EXPECT_TRUE(IsIn(0));
}

TEST_F(TurnSchedulerTest, AllHangOnceEachHasHadATurnForNothing) {
  Make(3, true, 1);
  for (uint32_t rank : {0U, 1U, 2U}) Rest(rank);
  Settle();
  EXPECT_EQ(In(), 1U);
  std::set<uint32_t> came_in;
  for (int i = 0; i < 100 && area_.all_still().load() == 0; ++i) {
    Later(milliseconds(60000));
    Settle();
    for (uint32_t rank : {0U, 1U, 2U})
      if (IsIn(rank)) came_in.insert(rank);
  }
  EXPECT_EQ(area_.all_still().load(), 1U);
  EXPECT_EQ(came_in.size(), 3U);
  // One gets on nevertheless.
  Rest(1);
  Settle();
  EXPECT_EQ(area_.all_still().load(), 0U);
}

TEST_F(TurnSchedulerTest, AnEndedProcessIsKnownToTheOthers) {
  Make(2);
  EXPECT_EQ(Cell(1).ended.load(), 0U);
  scheduler_->Ended(1);
  EXPECT_EQ(Cell(1).ended.load(), 1U);
}

TEST_F(TurnSchedulerTest, ServedRanksWaitForOthersToEnd) {
  Make(2);
  EXPECT_EQ(AskUntil(1, [] { return true; }), MemoryAnswer::kNone);
  Later(milliseconds(100000));
  Settle();
  EXPECT_EQ(Cell(1).answer.load(), MemoryAnswer::kNone) << "rank 0 still runs";
  scheduler_->Ended(0);
  Settle();
  EXPECT_EQ(TakeAnswer(1), MemoryAnswer::kTryAgain);
  EXPECT_TRUE(driver_.done.empty());
}

TEST_F(TurnSchedulerTest, OneOfTheRanksThatAllWantMemoryGoesOn) {
  Make(2);
  EXPECT_EQ(AskUntil(0, [] { return true; }), MemoryAnswer::kNone);
  Ask(1);
  Settle();
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 1"}));
  EXPECT_EQ(TakeAnswer(0), MemoryAnswer::kTryAgain);
  scheduler_->Ended(0);
  Settle();
  EXPECT_EQ(driver_.done.back(), "in 1");
  EXPECT_EQ(TakeAnswer(1), MemoryAnswer::kTryAgain);
}

TEST_F(TurnSchedulerTest, ARankThatDoesNotFitAloneIsRefused) {
  Make(2);
  Rest(0);
  Cell(1).asked_bytes.store(6000000);
  Cell(1).total_bytes.store(8000000);
  Cell(1).free_bytes.store(1000000);
  Cell(1).held.store(7000000);
  EXPECT_EQ(AskUntil(1, [] { return true; }), MemoryAnswer::kNo);
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 0"}));
  const std::string& shortage = scheduler_->shortage(1);
  EXPECT_NE(
      shortage.find("rank 1 asked for 6.00 MB on device 0, which has 8.00 MB, 1.00 MB of them "
                    "free: 5.00 MB are missing; it holds 7.00 MB;"),
      std::string::npos)
      << shortage;
  EXPECT_TRUE(scheduler_->shortage(0).empty());
}

TEST_F(TurnSchedulerTest, WithoutTheDriversCallsTheHeldMemoryIsReported) {
  Make(3, false);
  Rest(0);
  Rest(2);
  Cell(0).held.store(2000000);
  Cell(2).held.store(3000000);
  EXPECT_EQ(AskUntil(1, [] { return true; }), MemoryAnswer::kNone);
  EXPECT_EQ(TakeAnswer(1), MemoryAnswer::kNone);
  Later(milliseconds(6000));
  Settle();
  EXPECT_EQ(TakeAnswer(1), MemoryAnswer::kNo);
  const std::string& shortage = scheduler_->shortage(1);
  EXPECT_NE(shortage.find("rank 0 2.00 MB, rank 2 3.00 MB; ranks cannot take turns: the driver is "
                          "too old"),
            std::string::npos)
      << shortage;
}

TEST_F(TurnSchedulerTest, ARankThatCannotBeSwappedOutStays) {
  Make(3);
  Rest(0);
  Settle();
  Rest(2);
  driver_.next = {{How::kRefused, "managed memory"}};
  EXPECT_EQ(AskUntil(1, [&] { return In() > 2; }), MemoryAnswer::kTryAgain);
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 0", "out 2"}));
  EXPECT_TRUE(IsIn(0));
  EXPECT_EQ(said_.front(), "rank 0 cannot be swapped out: managed memory");
}

TEST_F(TurnSchedulerTest, RoomIsMadeForOneThatComesBackToDevicesThatAreFuller) {
  Make(3);
  Rest(0);
  ASSERT_EQ(AskUntil(1, [&] { return In() > 2; }), MemoryAnswer::kTryAgain);
  Rest(2);
  EXPECT_FALSE(GoOn(0));
  driver_.done.clear();
  driver_.next = {{How::kNoRoom, "out of memory"}, {How::kDone, ""}};
  Settle();
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 2", "in 0"}));
  Rest(1);
  Settle();
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 2", "in 0", "out 1", "in 0"}));
  EXPECT_TRUE(scheduler_->TakeLost().empty());
}

TEST_F(TurnSchedulerTest, ARankThatTheDriverHasLostIsSaid) {
  Make(2);
  Rest(0);
  driver_.next = {{How::kLost, "an error"}};
  EXPECT_EQ(AskUntil(1, [] { return true; }), MemoryAnswer::kNone);
  EXPECT_EQ(scheduler_->TakeLost(), std::vector<size_t>{0});
  EXPECT_NE(scheduler_->shortage(0).find("an error"), std::string::npos);
  EXPECT_TRUE(scheduler_->TakeLost().empty());
}

TEST_F(TurnSchedulerTest, RanksOfOtherDevicesAreLeftAlone) {
  Make(3);
  Cell(0).devices.store(2);
  Rest(0);
  EXPECT_EQ(AskUntil(1, [] { return true; }), MemoryAnswer::kNone);
  EXPECT_TRUE(driver_.done.empty());
}

TEST_F(TurnSchedulerTest, SoManyAtOnceAsAreAskedFor) {
  Make(3, true, 1);
  Settle();
  EXPECT_TRUE(driver_.done.empty()) << "they all run";
  Rest(1);
  Settle();
  Rest(0);
  Settle();
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 1", "out 0"}));
  Rest(2);
  Settle();
  EXPECT_TRUE(IsIn(2));
  EXPECT_FALSE(GoOn(0));
  Settle();
  EXPECT_EQ(driver_.done.back(), "in 0");
  EXPECT_EQ(In(), 1U);
}

// A thread of a rank that is out may be what all others wait for.
TEST_F(TurnSchedulerTest, RanksSwappedOutComeBackInTurnWhenAllWait) {
  Make(3);
  Rest(0);
  Settle();
  Rest(1);
  ASSERT_EQ(AskUntil(2, [&] { return In() > 1; }), MemoryAnswer::kTryAgain);
  Rest(2);
  Settle();
  driver_.done.clear();
  Settle();
  EXPECT_TRUE(driver_.done.empty());
  Later(milliseconds(1100));
  Settle();
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 2", "in 0"}));
  Later(milliseconds(1100));
  Settle();
  EXPECT_EQ(driver_.done.size(), 2U) << "each time it takes longer";
  Later(milliseconds(1100));
  Settle();
  EXPECT_EQ(driver_.done, (std::vector<std::string>{"out 2", "in 0", "out 0", "in 1"}));
}

}  // namespace
}  // namespace deja::cli
