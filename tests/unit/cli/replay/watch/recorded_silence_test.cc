#include "cli/replay/watch/recorded_silence.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "api/libc_table.h"
#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

using std::chrono::seconds;

TEST(RecordedSilenceTest, IsTheLongestTimeBetweenOperations) {
  WrittenRank rank;
  rank.Begin();
  rank.Wait(seconds(7));
  rank.Call(2);
  rank.Wait(seconds(3));
  rank.Call(3);
  rank.EndBatch();
  EXPECT_EQ(LongestSilence({&rank.Reader()}), seconds(8));
}

TEST(RecordedSilenceTest, WhatAReplayDoesNotCountIsSilence) {
  WrittenRank rank;
  rank.Begin();
  for (int i = 0; i < 5; ++i) {
    rank.Wait(seconds(2));
    format::Input host;
    host.api = static_cast<uint32_t>(api::LibcApi::kgethostname);
    rank.Add(host);
    rank.Add(format::Note{"nothing of the program's"});
  }
  rank.Add(format::ProcessExit{0, 0});
  rank.EndBatch();
  EXPECT_EQ(LongestSilence({&rank.Reader()}), seconds(11));
}

TEST(RecordedSilenceTest, AChildThatDoesSomethingMeanwhileBreaksIt) {
  WrittenRank rank;
  rank.Begin();
  rank.Wait(seconds(10));
  rank.Call(2);
  rank.EndBatch();
  WrittenRank child;
  child.Wait(seconds(6));
  child.Begin();
  EXPECT_EQ(LongestSilence({&rank.Reader(), &child.Reader()}), seconds(7));
}

}  // namespace
}  // namespace deja::cli
