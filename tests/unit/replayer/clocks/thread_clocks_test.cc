#include "replayer/clocks/thread_clocks.h"

#include <gtest/gtest.h>
#include <time.h>

#include <map>

#include "api/nccl_table.h"
#include "format/tail/clock_run.h"
#include "format/wire/message_codec.h"
#include "replayer/plan/replay_plan.h"
#include "tests/unit/replayer/fake_rank.h"

namespace deja::replayer {
namespace {

using format::ClockSource;

constexpr int64_t kSecond = 1000000000;
constexpr int64_t kMs = 1000000;
constexpr auto kMonotonic = static_cast<uint32_t>(ClockSource::kMonotonic);
constexpr auto kRealtime = static_cast<uint32_t>(ClockSource::kRealtime);

TEST(ClockStreamTest, GivesEachSegmentItsReadings) {
  ClockStream stream;
  for (int64_t value : {100, 105, 90}) stream.Add(0, value);
  stream.Add(3, INT64_MAX);
  stream.Add(3, INT64_MIN);
  stream.Add(7, 1);
  ClockStream::Cursor cursor(&stream);
  EXPECT_EQ(cursor.Peek(), 100);
  EXPECT_EQ(cursor.Next(0), 100);
  EXPECT_EQ(cursor.Next(0), 105);
  EXPECT_EQ(cursor.Peek(), 90);
  EXPECT_EQ(cursor.Next(2), std::nullopt);  // the third of segment 0 is gone
  EXPECT_EQ(cursor.Next(3), INT64_MAX);
  EXPECT_EQ(cursor.Next(3), INT64_MIN);
  EXPECT_EQ(cursor.Next(3), std::nullopt);
  EXPECT_EQ(cursor.Peek(), 1);
  EXPECT_EQ(cursor.Next(7), 1);
  EXPECT_EQ(cursor.Next(7), std::nullopt);
  EXPECT_EQ(cursor.Peek(), std::nullopt);
  EXPECT_EQ(ClockStream::Cursor().Next(0), std::nullopt);
}

TEST(ClockStreamTest, TheLastReadingIsTakenOutOnce) {
  ClockStream stream;
  EXPECT_FALSE(stream.TakeLast());
  stream.Add(0, 5);
  stream.Add(0, 900);
  EXPECT_TRUE(stream.TakeLast());
  EXPECT_FALSE(stream.TakeLast());
  stream.Add(1, 1);
  EXPECT_TRUE(stream.TakeLast());
  stream.Add(1, 7);
  ClockStream::Cursor cursor(&stream);
  EXPECT_EQ(cursor.Next(0), 5);
  EXPECT_EQ(cursor.Next(1), 7);
  EXPECT_EQ(cursor.Next(1), std::nullopt);
}

class ThreadClocksTest : public ::testing::Test {
 protected:
  ThreadClocksTest() {
    process_.Start(ClockFamily::kDay, 1000 * kSecond);
    process_.Start(ClockFamily::kMonotonic, 50 * kSecond);
  }
  int64_t Monotonic(int64_t live, uint64_t segment = 0) {
    return clocks_.Read(ClockSource::kMonotonic, live, segment);
  }

  ProcessClocks process_;
  std::map<uint32_t, ClockStream> streams_;
  ThreadClocks clocks_{process_, &streams_};
};

TEST_F(ThreadClocksTest, TellsWhatWasRecordedHoweverFastTheReplayIs) {
  for (int64_t i = 0; i < 5; ++i) streams_[kMonotonic].Add(0, i * kSecond);
  EXPECT_EQ(Monotonic(7000), 0);
  EXPECT_EQ(Monotonic(7001), kSecond);
  EXPECT_EQ(Monotonic(7000 + kSecond), 2 * kSecond);
  EXPECT_EQ(Monotonic(7000 + 90 * kSecond), 3 * kSecond);
}

TEST_F(ThreadClocksTest, AReadingThatIsTakenBackIsStillToCome) {
  for (int64_t i = 1; i < 4; ++i) streams_[kMonotonic].Add(0, i * kSecond);
  EXPECT_FALSE(clocks_.TakeBack(ClockSource::kMonotonic));
  EXPECT_EQ(Monotonic(7000), kSecond);
  EXPECT_EQ(Monotonic(7001), 2 * kSecond);
  EXPECT_FALSE(clocks_.TakeBack(ClockSource::kRealtime));
  EXPECT_TRUE(clocks_.TakeBack(ClockSource::kMonotonic));
  EXPECT_FALSE(clocks_.TakeBack(ClockSource::kMonotonic));
  EXPECT_EQ(Monotonic(7002), 2 * kSecond);
  EXPECT_EQ(Monotonic(7003), 3 * kSecond);
}

TEST_F(ThreadClocksTest, ASurplusReadingThatIsTakenBackTakesNoTime) {
  streams_[kMonotonic].Add(0, kSecond);
  EXPECT_EQ(Monotonic(0), kSecond);
  EXPECT_EQ(Monotonic(5 * kMs), kSecond + 5 * kMs);
  EXPECT_TRUE(clocks_.TakeBack(ClockSource::kMonotonic));
  EXPECT_EQ(Monotonic(2 * kMs), kSecond + 2 * kMs);
}

TEST_F(ThreadClocksTest, ADeadlineComesFromAReadingThatIsNotTakenBack) {
  for (int64_t i = 1; i < 4; ++i) streams_[kMonotonic].Add(0, i * kSecond);
  EXPECT_EQ(Monotonic(100 * kSecond), kSecond);
  EXPECT_EQ(Monotonic(100 * kSecond + kMs), 2 * kSecond);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, 2 * kSecond + 5 * kMs),
            98 * kSecond + kMs);
  EXPECT_TRUE(clocks_.TakeBack(ClockSource::kMonotonic));
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, 61 * kSecond), 99 * kSecond);
  EXPECT_EQ(process_.Offset(ClockFamily::kMonotonic), 99 * kSecond);
}

TEST_F(ThreadClocksTest, GoesOnAtThePaceOfTheLiveClock) {
  streams_[kMonotonic].Add(0, kSecond);
  EXPECT_EQ(Monotonic(500 * kSecond), kSecond);
  EXPECT_EQ(Monotonic(501 * kSecond), 2 * kSecond);
  EXPECT_EQ(Monotonic(600 * kSecond), 101 * kSecond);
}

TEST_F(ThreadClocksTest, IsInStepAgainInTheNextSegment) {
  streams_[kMonotonic].Add(0, kSecond);
  streams_[kMonotonic].Add(0, 2 * kSecond);
  streams_[kMonotonic].Add(1, 10 * kSecond);
  streams_[kMonotonic].Add(1, 11 * kSecond);
  EXPECT_EQ(Monotonic(0), kSecond);
  EXPECT_EQ(Monotonic(5, 1), 10 * kSecond);  // one less in segment 0
  EXPECT_EQ(Monotonic(6, 1), 11 * kSecond);
}

TEST_F(ThreadClocksTest, PausesBeforeTheNextRecordedReadingButNotForGood) {
  streams_[kMonotonic].Add(0, kSecond);
  streams_[kMonotonic].Add(1, kSecond + 5 * kMs);
  EXPECT_EQ(Monotonic(0), kSecond);
  EXPECT_EQ(Monotonic(3 * kMs), kSecond + 3 * kMs);
  EXPECT_EQ(Monotonic(8 * kMs), kSecond + 5 * kMs);
  EXPECT_EQ(Monotonic(80 * kMs), kSecond + 5 * kMs);
  const int64_t later = 10 * kSecond;
  EXPECT_EQ(Monotonic(later), later + kSecond - ThreadClocks::kPauseNs);
  EXPECT_EQ(Monotonic(later + kMs), later + kMs + kSecond - ThreadClocks::kPauseNs);
  // What was recorded is behind by now: a monotonic clock never goes back.
  EXPECT_EQ(Monotonic(later + 2 * kMs, 1), later + kMs + kSecond - ThreadClocks::kPauseNs);
}

TEST_F(ThreadClocksTest, TheTimeOfDayIsServedAsRecordedEvenBackwards) {
  streams_[kRealtime].Add(0, 9 * kSecond);
  streams_[kRealtime].Add(0, 8 * kSecond);
  EXPECT_EQ(clocks_.Read(ClockSource::kRealtime, 77, 0), 9 * kSecond);
  EXPECT_EQ(clocks_.Read(ClockSource::kRealtime, 78, 0), 8 * kSecond);
}

TEST_F(ThreadClocksTest, AThreadWithoutReadingsSeesTheTimeOfTheOthers) {
  ThreadClocks unknown(process_, nullptr);
  EXPECT_EQ(unknown.Read(ClockSource::kMonotonic, 60 * kSecond, 0), 10 * kSecond);
  streams_[kMonotonic].Add(0, 3 * kSecond);
  Monotonic(61 * kSecond);  // 58 s apart from now on
  ThreadClocks another(process_, nullptr);
  EXPECT_EQ(another.Read(ClockSource::kMonotonic, 62 * kSecond, 0), 4 * kSecond);
}

TEST_F(ThreadClocksTest, UnreadClocksStayLive) {
  EXPECT_EQ(clocks_.Read(ClockSource::kBoottime, 123, 0), 123);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kBoottime, 5), 0);
}

TEST_F(ThreadClocksTest, TheModeSaysWhichClocksAreServed) {
  streams_[kMonotonic].Add(0, 1);
  streams_[kRealtime].Add(0, 2);
  process_.SetMode(ClockMode::kDay);
  EXPECT_EQ(Monotonic(1234), 1234);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, 5), 0);
  EXPECT_EQ(clocks_.Read(ClockSource::kRealtime, 99, 0), 2);
  process_.SetMode(ClockMode::kLive);
  EXPECT_EQ(clocks_.Read(ClockSource::kRealtime, 100, 0), 100);
}

TEST_F(ThreadClocksTest, DeadlinesFollowTheLastReading) {
  streams_[kMonotonic].Add(0, kSecond);
  streams_[kMonotonic].Add(0, 40 * kSecond);
  Monotonic(100 * kSecond);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, 2 * kSecond), 99 * kSecond);
  Monotonic(100 * kSecond + 1);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, 2 * kSecond), 60 * kSecond + 1);
}

TEST_F(ThreadClocksTest, TheSameWaitAgainIsTranslatedAsBefore) {
  streams_[kMonotonic].Add(0, kSecond);
  Monotonic(100 * kSecond);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, 2 * kSecond), 99 * kSecond);
  process_.SetOffset(ClockFamily::kMonotonic, 5 * kSecond);  // another thread has read the clock
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, 2 * kSecond), 99 * kSecond);
}

TEST_F(ThreadClocksTest, ADeadlineOfAnotherThreadIsTranslatedAsItsReading) {
  streams_[kMonotonic].Add(0, kSecond);
  Monotonic(100 * kSecond);
  clocks_.DeadlineOffset(ClockFamily::kMonotonic, 2 * kSecond);
  process_.SetOffset(ClockFamily::kMonotonic, 5 * kSecond);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, 3000 * kSecond), 5 * kSecond);
}

TEST_F(ThreadClocksTest, WholeSecondsDoNotBlurADeadline) {
  streams_[kRealtime].Add(0, 7 * kSecond + 900 * kMs);
  streams_[static_cast<uint32_t>(ClockSource::kTime)].Add(0, 7 * kSecond);
  clocks_.Read(ClockSource::kRealtime, 1000 * kSecond + 100 * kMs, 0);
  clocks_.Read(ClockSource::kTime, 1000 * kSecond, 0);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kDay, 8 * kSecond),
            1000 * kSecond + 100 * kMs - 7 * kSecond - 900 * kMs);
}

TEST_F(ThreadClocksTest, ADeadlineOnTheLiveClockOfAnotherDayStays) {
  streams_[kMonotonic].Add(0, kSecond);
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t live = now.tv_sec * kSecond + now.tv_nsec;
  Monotonic(live + 48 * 3600 * kSecond);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, live + kSecond), 0);
  EXPECT_EQ(clocks_.DeadlineOffset(ClockFamily::kMonotonic, live + 10 * 3600 * kSecond),
            live + 48 * 3600 * kSecond - kSecond);
}

// ---- What the plan makes of the events

std::unique_ptr<ReplayPlan> BuildClocks(const FakeRank& rank) {
  auto plan = ReplayPlan::Build(rank, {[](uint32_t) { return CallKind::kOrdered; },
                                       [](uint32_t) { return false; }, api::InputKindOf});
  EXPECT_TRUE(plan.has_value());
  return plan ? std::move(*plan) : nullptr;
}

TEST(ReplayPlanClocksTest, ReadingsBelongToSegments) {
  FakeRank rank;
  rank.Thread(0, "0");
  format::ClockRun run;
  run.sources = {kMonotonic, kRealtime, kMonotonic};
  run.deltas = {100, 5000, 11};
  rank.Add(0, run);
  rank.Call(0, static_cast<uint32_t>(api::NcclApi::ncclCommInitRank));
  run.sources = {kMonotonic};
  run.deltas = {300, 1};
  rank.Add(0, run);
  auto plan = BuildClocks(rank);
  const auto& clocks = plan->threads()[0].clocks;
  ClockStream::Cursor cursor(&clocks.at(kMonotonic));
  EXPECT_EQ(cursor.Next(0), 100);
  EXPECT_EQ(cursor.Next(0), 111);
  EXPECT_EQ(cursor.Next(0), std::nullopt);
  EXPECT_EQ(cursor.Next(1), 300);
  EXPECT_EQ(cursor.Next(1), 301);
  EXPECT_EQ(ClockStream::Cursor(&clocks.at(kRealtime)).Next(0), 5000);
  EXPECT_EQ(plan->first_readings().at(kMonotonic).value, 100);
}

}  // namespace
}  // namespace deja::replayer
