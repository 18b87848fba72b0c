// What is left out of long communicators, and that findings are the same without it.
#include "check/evidence/trim.h"

#include <gtest/gtest.h>

#include <tuple>

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
  const CallList& calls = ranks[2].comms[0].collectives;
  EXPECT_EQ(calls.size(), ranks[0].comms[0].collectives.size());
  for (size_t i = 1; i < calls.size(); ++i) EXPECT_EQ(calls[i].seq, calls[i - 1].seq + 1);
}

TEST(TrimTest, ANanIsADifference) {
  MadeJob made = Long(0);
  for (uint32_t rank : {0, 1, 2}) made[rank].comms[0].collectives.Own()[50].flags |= kNanIn;
  const Report report = Check(Job(Trimmed(made, 8)));
  EXPECT_EQ(Only(report).kind, Kind::kNanOrigin);
  EXPECT_EQ(Only(report).number, 51u);
}

// What is left of each rank is what the rank made, whoever it shares it with.
void ExpectTheSameCalls(MadeJob& made, uint32_t ranks, size_t window, size_t own) {
  Trimmer trimmer(window, own);
  for (uint32_t rank = 0; rank < ranks; ++rank) trimmer.Take(made[rank]);
  const Job trimmed(trimmer.Finish());
  const Job whole = made.Made();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const CommSummary& comm = trimmed.ranks[rank].comms[0];
    const CallList& all = whole.ranks[rank].comms[0].collectives;
    ASSERT_EQ(comm.collectives.size() + comm.left_out, all.size());
    for (size_t i = 0; i < comm.collectives.size(); ++i) {
      const Call& call = comm.collectives[i];
      const Call& wanted = all[i + comm.left_out];
      ASSERT_EQ(call.seq, wanted.seq) << "rank " << rank << ", call " << i;
      ASSERT_EQ(trimmed.SignatureText(call), whole.SignatureText(wanted));
      ASSERT_EQ(trimmed.AtSite(call.site), whole.AtSite(wanted.site));
      ASSERT_EQ(std::tie(call.step, call.thread, call.flags, call.output),
                std::tie(wanted.step, wanted.thread, wanted.flags, wanted.output));
      const bool has_own_time = i >= comm.collectives.OwnFrom();
      ASSERT_EQ(has_own_time ? call.time_ns : wanted.time_ns, wanted.time_ns);
    }
  }
}

TEST(TrimTest, EveryCallIsWhatTheRankMade) {
  for (const int without : {0, 20, 120, 199}) {
    MadeJob made = Long(without);
    std::vector<Call>& calls = made[2].comms[0].collectives.Own();
    calls[30].output = 99;
    calls[31].flags |= kNanOut;
    calls[90].thread = 7;
    calls[150].step = 3;
    for (const size_t own : {size_t{0}, size_t{10}, size_t{1000}, Trimmer::kAll})
      ExpectTheSameCalls(made, 3, 16, own);
  }
}

// It may come first, and nothing is left out of it.
TEST(TrimTest, ARankWithMissingEventsSharesWhatItHas) {
  for (const uint32_t partial : {0u, 1u}) {
    MadeJob made = Long(0);
    made[partial].is_partial = true;
    ExpectTheSameCalls(made, 3, 16, 8);
    Trimmer trimmer(16, 8);
    for (uint32_t rank : {0, 1, 2}) trimmer.Take(made[rank]);
    const std::vector<RankSummary> ranks = trimmer.Finish();
    EXPECT_EQ(ranks[partial].comms[0].collectives.size(), size_t{kCalls});
    EXPECT_EQ(ranks[2].comms[0].left_out, kCalls - 16u);
  }
}

// The calls after a NaN that all ranks have got are no more of each rank's own than those before.
TEST(TrimTest, CallsThatAreBadOnAllRanksAreShared) {
  MadeJob made = Long(0);
  for (uint32_t rank : {0, 1, 2})
    for (size_t i = 20; i < kCalls; ++i) made[rank].comms[0].collectives.Own()[i].flags |= kNanOut;
  ExpectTheSameCalls(made, 3, 16, 8);
  Trimmer trimmer(16, 8);
  for (uint32_t rank : {0, 1, 2}) trimmer.Take(made[rank]);
  const std::vector<RankSummary> ranks = trimmer.Finish();
  EXPECT_EQ(ranks[2].comms[0].collectives.Own().size(), 8u);
  EXPECT_EQ(&ranks[2].comms[0].collectives[0], &ranks[0].comms[0].collectives[0]);
}

// Each with places of its own, in numbers that the others do not have.
TEST(TrimTest, RanksThatAllDifferKeepTheirCalls) {
  constexpr uint32_t kRanks = 24;
  MadeJob made(kRanks);
  for (int i = 0; i < kCalls; ++i)
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      made.Do(rank, AllReduce(1 + rank), "train.py", static_cast<int>(rank * 1000) + i % 7);
  ExpectTheSameCalls(made, kRanks, 16, 8);
}

// The root of a broadcast has its input only, and is the one that the others would share with.
TEST(TrimTest, ARootsInputIsItsResult) {
  MadeJob made(3);
  for (int i = 0; i < kCalls; ++i)
    for (uint32_t rank : {0, 1, 2})
      made.Do(rank, Of(Operation::kBroadcast, 4, 0), "train.py", 1,
              {rank == 0 ? 7u : 0u, rank == 0 ? 0u : 7u});
  made[2].comms[0].collectives.Own()[50].output = 8;
  const Finding whole = Only(made.Checked());
  Trimmer trimmer(16, 8);
  for (uint32_t rank : {0, 1, 2}) trimmer.Take(made[rank]);
  const Finding trimmed = Only(Check(Job(trimmer.Finish())));
  EXPECT_EQ(whole.kind, Kind::kCorrupt);
  EXPECT_EQ(trimmed.kind, Kind::kCorrupt);
  EXPECT_EQ(trimmed.sentence, whole.sentence);
  EXPECT_EQ(trimmed.evidence, whole.evidence);
}

// A rank that differs takes its calls' times with it; the others have the first one's, which say
// nothing of who was late.
TEST(TrimTest, SharedTimesBlameNoStraggler) {
  MadeJob made(3);
  for (int i = 0; i < kCalls; ++i) {
    for (uint32_t rank : {0, 1, 2}) {
      if (rank == 2 && i == kCalls / 2) continue;
      Call& call = made.Do(rank, AllReduce(1 + static_cast<uint64_t>(i % 3)), "train.py", i % 3);
      call.time_ns =
          (1000 + static_cast<uint64_t>(i)) * kSecond / 5 + (rank == 0 ? 0 : kSecond / 9);
    }
  }
  for (const size_t own : {size_t{8}, size_t{1000}}) {
    Trimmer trimmer(200, own);
    for (uint32_t rank : {0, 1, 2}) trimmer.Take(made[rank]);
    for (const Finding& finding : Check(Job(trimmer.Finish())).findings)
      EXPECT_NE(finding.kind, Kind::kStraggler) << finding.sentence;
  }
}

}  // namespace
}  // namespace deja::check
