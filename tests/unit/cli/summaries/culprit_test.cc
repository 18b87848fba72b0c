#include "cli/summaries/culprit.h"

#include <gtest/gtest.h>

#include <csignal>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

// A job of ranks with one communicator, each in its first operation.
class CulpritTest : public testing::Test {
 protected:
  // Ranks 0, 1, …; each is to be given its end before the question.
  WrittenRank& AddRank() {
    ranks_.emplace_back();
    ranks_.back().Begin();
    return ranks_.back();
  }
  static void Exit(WrittenRank& rank, int code) {
    rank.Add(format::ProcessExit{code, 0});
    rank.EndBatch();
  }
  static void Crash(WrittenRank& rank, int signal) {
    format::Crash crash;
    crash.signal = static_cast<uint32_t>(signal);
    rank.Add(crash);
    rank.EndBatch();
  }
  static void CallWithNan(WrittenRank& rank, uint64_t comm_seq) {
    format::CallEnter enter;
    enter.api = 1;
    enter.comm = 1;
    enter.comm_seq = comm_seq;
    format::Tensor tensor;
    tensor.stats.nan_count = 1;
    enter.inputs.push_back(tensor);
    format::CallLeave leave;
    leave.enter_seq = rank.Add(enter);
    rank.Add(leave);
  }

  std::string Find() {
    std::list<RankSummary> stories;
    std::vector<SuspectRank> suspects;
    uint32_t number = 0;
    for (WrittenRank& rank : ranks_) {
      const format::RankReader& reader = rank.Reader();
      stories.push_back(ReadRankSummary(reader));
      suspects.push_back({number++, &reader, &stories.back()});
    }
    Symbolizer symbolizer;
    const std::optional<Culprit> culprit = FindCulprit(suspects, symbolizer);
    return culprit ? std::to_string(culprit->rank) + ": " + culprit->why : "none";
  }

 private:
  std::list<WrittenRank> ranks_;
};

TEST_F(CulpritTest, NoneWhereAllEndedWell) {
  for (int i = 0; i < 3; ++i) Exit(AddRank(), 0);
  EXPECT_EQ(Find(), "none");
}

TEST_F(CulpritTest, TheOneThatCrashedComesBeforeThoseThatFailedForIt) {
  for (int i = 0; i < 2; ++i) Exit(AddRank(), 1);
  Crash(AddRank(), SIGSEGV);
  Crash(AddRank(), SIGTERM);
  EXPECT_EQ(Find(), "2: it crashed first");
}

TEST_F(CulpritTest, TheFirstThatPassedANan) {
  // All see it in the end, and all give up.
  const uint64_t first_with_nan[] = {4, 4, 3};
  for (const uint64_t first : first_with_nan) {
    WrittenRank& rank = AddRank();
    for (uint64_t seq = 2; seq <= 5; ++seq)
      if (seq >= first)
        CallWithNan(rank, seq);
      else
        rank.Call(seq);
    rank.EndBatch();
    Exit(rank, 1);
  }
  EXPECT_EQ(Find(), "2: the first to pass a NaN, to AllReduce #3");
}

TEST_F(CulpritTest, TheOneThatOthersWaitFor) {
  for (int i = 0; i < 3; ++i) {
    WrittenRank& rank = AddRank();
    rank.Call(2);
    if (i != 1) rank.Enter(3);
    rank.EndBatch();
    Crash(rank, SIGINT);
  }
  EXPECT_EQ(Find(), "1: it never reached AllReduce #3");
}

TEST_F(CulpritTest, TheFirstThatFailedByItself) {
  Crash(AddRank(), SIGTERM);
  WrittenRank& late = AddRank();
  late.Call(2);
  late.EndBatch();
  Exit(late, 1);
  Exit(AddRank(), 3);
  EXPECT_EQ(Find(), "2: it failed first");
}

}  // namespace
}  // namespace deja::cli
