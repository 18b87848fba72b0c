// Operations joined across ranks, and what ranks waited.
#include "check/timeline/timeline.h"

#include <gtest/gtest.h>

#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

TEST(Timeline, JoinsACollectiveAcrossItsRanks) {
  MadeJob made(3);
  made.All(AllReduce(8), "train.py", 8);
  const Job job = made.Made();
  const auto operations = JoinOperations(job);
  ASSERT_EQ(operations.size(), 1u);
  const JoinedOperation& one = operations.front();
  EXPECT_EQ(one.number, 1u);
  EXPECT_TRUE(one.agrees);
  ASSERT_EQ(one.parts.size(), 3u);
  EXPECT_EQ(one.begin_ns, one.parts[0].begin_ns);
  EXPECT_EQ(one.met_ns, one.parts[2].begin_ns);
  EXPECT_EQ(one.Last(), 2u);
}

TEST(Timeline, KeepsTheMismatch) {
  MadeJob made(2);
  made.Do(0, AllReduce(8), "a.py", 1);
  made.Do(1, AllReduce(9), "b.py", 2);
  const Job job = made.Made();
  const auto operations = JoinOperations(job);
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_FALSE(operations.front().agrees);
}

TEST(Timeline, AnOpenPartLastsUntilTheRanksLastEvent) {
  MadeJob made(2);
  made.Do(0, AllReduce(8), "a.py", 1, {.flags = 0});
  made.Wait(5 * kMillisecond);
  made.KillAll();
  const Job job = made.Made();
  const auto operations = JoinOperations(job);
  ASSERT_EQ(operations.size(), 1u);
  ASSERT_EQ(operations.front().parts.size(), 1u);
  EXPECT_TRUE(operations.front().parts.front().is_open);
  EXPECT_EQ(operations.front().end_ns, job.ranks[0].last_time_ns);
}

TEST(Timeline, PairsSendsWithReceives) {
  MadeJob made(3);
  made.Send(0, 1, 4);
  made.Send(0, 2, 4);
  made.Send(0, 1, 4);
  made.Receive(1, 0, 4);
  made.Receive(1, 0, 4);
  const Job job = made.Made();
  const auto operations = JoinOperations(job);
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[0].parts.size(), 2u);
  EXPECT_EQ(operations[1].parts.size(), 1u);  // rank 2 has not received
  EXPECT_EQ(operations[2].parts.size(), 2u);
  EXPECT_EQ(operations[2].number, 2u);
  EXPECT_EQ(job.ranks[operations[2].parts[1].rank].rank, 1u);
}

TEST(Timeline, SumsUpWhoWaitedForWhom) {
  MadeJob made(3);
  for (int i = 0; i < 4; ++i) {
    made.Do(0, Barrier(), "a.py", 1).lasted_us = 30'000;
    made.Do(1, Barrier(), "a.py", 1).lasted_us = 30'000;
    made.Wait(20 * kMillisecond);
    made.Do(2, Barrier(), "a.py", 1).lasted_us = 10'000;
    made.Wait(20 * kMillisecond);
  }
  const Job job = made.Made();
  const auto waits = WaitsOf(job, JoinOperations(job));
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_EQ(waits[2].times_last, 4u);
  EXPECT_GE(waits[2].kept_ns, 80 * kMillisecond);
  EXPECT_EQ(waits[2].waited_ns, 0u);
  EXPECT_GE(waits[0].waited_ns, 80 * kMillisecond);
  EXPECT_EQ(waits[0].times_last, 0u);
  EXPECT_EQ(waits[0].inside_ns, 120 * kMillisecond);
}

}  // namespace
}  // namespace deja::check
