// What is left out of long communicators, and that findings are the same without it.
#include "check/evidence/trim.h"

#include <gtest/gtest.h>

#include "check/check.h"
#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

constexpr int kCalls = 200;

// Rank 1 leaves call `without` out; 0: none does.
MadeJob Long(int without) {
  MadeJob made(3);
  for (int i = 1; i <= kCalls; ++i) {
    for (uint32_t rank : {0, 1, 2}) {
      if (rank == 1 && i == without) continue;
      made.Do(rank, AllReduce(static_cast<uint64_t>(1 + i % 3)), "train.py", i % 3,
              {static_cast<uint64_t>(rank + 1), static_cast<uint64_t>(i)});
    }
  }
  return made;
}

std::vector<RankSummary> Trimmed(MadeJob& made, size_t window) {
  Trimmer trimmer(window);
  for (uint32_t rank : {0, 1, 2}) trimmer.Take(made[rank]);
  return trimmer.Finish();
}

TEST(TrimTest, TheLastOfEqualCallsStay) {
  MadeJob made = Long(0);
  for (const RankSummary& rank : Trimmed(made, 16)) {
    EXPECT_EQ(rank.comms[0].collectives.size(), 16u);
    EXPECT_EQ(rank.comms[0].left_out, kCalls - 16u);
    EXPECT_EQ(rank.comms[0].collectives.front().seq, kCalls - 15u);
  }
}

TEST(TrimTest, TheFindingIsTheSameOne) {
  MadeJob made = Long(120);
  const Report whole = made.Checked();
  const Report trimmed = Check(Job(Trimmed(made, 64)));
  const Finding& a = Only(whole);
  const Finding& b = Only(trimmed);
  EXPECT_EQ(b.kind, Kind::kOrder);
  EXPECT_EQ(b.kind, a.kind);
  EXPECT_EQ(b.number, a.number);
  EXPECT_EQ(b.sentence, a.sentence);
  EXPECT_EQ(b.blamed, Ranks{1});
}

// The third rank had left out more than the second one lets it.
TEST(TrimTest, RanksThatAgreeLongerGetBackWhatTheyHad) {
  MadeJob made = Long(100);
  const std::vector<RankSummary> ranks = Trimmed(made, 8);
  EXPECT_EQ(ranks[2].comms[0].left_out, ranks[1].comms[0].left_out);
  const std::vector<Call>& calls = ranks[2].comms[0].collectives;
  EXPECT_EQ(calls.size(), ranks[0].comms[0].collectives.size());
  for (size_t i = 1; i < calls.size(); ++i) EXPECT_EQ(calls[i].seq, calls[i - 1].seq + 1);
}

TEST(TrimTest, ANanIsADifference) {
  MadeJob made = Long(0);
  for (uint32_t rank : {0, 1, 2}) made[rank].comms[0].collectives[50].flags |= kNanIn;
  const Report report = Check(Job(Trimmed(made, 8)));
  EXPECT_EQ(Only(report).kind, Kind::kNanOrigin);
  EXPECT_EQ(Only(report).number, 51u);
}

}  // namespace
}  // namespace deja::check
