// How far clocks of machines are apart, by what their ranks did together.
#include "cli/merge/merge_parts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/unit/check/made_job.h"

namespace deja::cli {
namespace {

constexpr int64_t kMs = 1'000'000;

// A part for each of `ahead`, with a rank each, of a job whose ranks leave ten all-reduces
// together.
MergeParts Parts(const std::vector<int64_t>& ahead) {
  check::MadeJob made(static_cast<uint32_t>(ahead.size()));
  for (int i = 0; i < 10; ++i) {
    made.Wait(check::kSecond);
    made.All(check::AllReduce(8), "a.py", 1);
  }
  MergeParts merged;
  for (size_t p = 0; p < ahead.size(); ++p) {
    MergePart part;
    part.hosts = {"host"};
    check::RankSummary& rank = made[static_cast<uint32_t>(p)];
    for (check::Call& call : rank.comms[0].collectives.Own())
      call.time_ns += static_cast<uint64_t>(ahead[p]);
    part.summaries.push_back(rank);
    merged.parts.push_back(std::move(part));
  }
  return merged;
}

// In milliseconds: calls are made nanoseconds after one another.
std::vector<int64_t> Found(const MergeParts& merged) {
  std::vector<int64_t> found;
  for (const auto& part : ClocksAhead(merged)) found.push_back((part.front() + kMs / 2) / kMs);
  return found;
}

TEST(MergePartsTest, AClockIsAheadOfTheFirstOne) {
  EXPECT_EQ(Found(Parts({0, 5000 * kMs, 70 * kMs})), (std::vector<int64_t>{0, 5000, 70}));
}

TEST(MergePartsTest, WhatThreadsNeedToWakeIsNoDifference) {
  EXPECT_EQ(Found(Parts({0, 5 * kMs})), (std::vector<int64_t>{0, 0}));
}

TEST(MergePartsTest, OneLateRankOfManyOperationsIsNoClock) {
  MergeParts merged = Parts({0, 0});
  merged.parts[1].summaries[0].comms[0].collectives.Own()[3].time_ns += 9000 * kMs;
  EXPECT_EQ(Found(merged), (std::vector<int64_t>{0, 0}));
}

TEST(MergePartsTest, MachinesThatMeetOnlyThroughAnotherOne) {
  check::MadeJob made(3);
  for (uint32_t rank = 0; rank < 3; ++rank) made[rank].comms.clear();
  made.AddComm(1, {0, 1});
  made.AddComm(2, {1, 2});
  for (int i = 0; i < 5; ++i) {
    made.Wait(check::kSecond);
    made.Do(0, check::AllReduce(8), "a.py", 1, {}, 0);
    made.Do(1, check::AllReduce(8), "a.py", 1, {}, 0);
    made.Do(1, check::AllReduce(8), "a.py", 2, {}, 1);
    made.Do(2, check::AllReduce(8), "a.py", 2, {}, 0);
  }
  MergeParts merged;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    MergePart part;
    part.hosts = {"host"};
    for (check::CommSummary& comm : made[rank].comms)
      for (check::Call& call : comm.collectives.Own())
        call.time_ns += rank * static_cast<uint64_t>(1000 * kMs);
    part.summaries.push_back(made[rank]);
    merged.parts.push_back(std::move(part));
  }
  EXPECT_EQ(Found(merged), (std::vector<int64_t>{0, 1000, 2000}));
}

}  // namespace
}  // namespace deja::cli
