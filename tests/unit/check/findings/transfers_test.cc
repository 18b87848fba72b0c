// pairing, cycle and corrupt, of sends and receives.
#include <gtest/gtest.h>

#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

constexpr With kWithin = {0, 0, 0, 0};

// Each stage sends to the next one; the ranks make different numbers of operations.
TEST(TransfersTest, APipelineIsNoFinding) {
  MadeJob made(4);
  for (int batch = 0; batch < 20; ++batch) {
    for (uint32_t rank = 0; rank + 1 < 4; ++rank) {
      made.Send(rank, rank + 1, 64, {7, 0});
      made.Receive(rank + 1, rank, 64, {0, 7});
    }
    if (batch % 5 == 4) made.All(AllReduce(3), "train.py", 30, {0, 9});
  }
  const Report report = made.Checked();
  EXPECT_TRUE(report.findings.empty());
  EXPECT_TRUE(report.notes.empty());
}

TEST(TransfersTest, ASendWithAnotherCount) {
  MadeJob made(2);
  made.Send(0, 1, 64);
  made.Receive(1, 0, 64);
  made.Send(0, 1, 64);
  made.Receive(1, 0, 32);
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kPairing);
  EXPECT_EQ(finding.blamed, (Ranks{0, 1}));
  EXPECT_NE(finding.sentence.find("Send float32[64] #2 of rank 0 to rank 1"), std::string::npos)
      << finding.sentence;
}

TEST(TransfersTest, AReceiveWithoutASendAtAGoodEnd) {
  MadeJob made(2);
  made.Send(0, 1, 64);
  made.Receive(1, 0, 64);
  made.Receive(1, 0, 64, kWithin);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kPairing);
  EXPECT_EQ(Only(report).blamed, Ranks{0});
}

// A library refused it, and the program went on.
TEST(TransfersTest, ASendThatWasGivenUpNeedsNoReceive) {
  MadeJob made(2);
  made.Send(0, 1, 64, {5, 0, kFailed});
  made.Send(0, 1, 32, {7, 0});
  made.Receive(1, 0, 32, {0, 7});
  made.Send(0, 1, 64, {9, 0, kFailed});
  EXPECT_TRUE(made.Checked().findings.empty());
}

// A library refused both, for arguments of their own; the next message fits.
TEST(TransfersTest, CallsThatWereRefusedOnBothSidesAreNoMessage) {
  MadeJob made(2);
  made.Send(0, 1, 64, {5, 0, kDone | kFailed});
  made.Receive(1, 0, 32, {0, 0, kDone | kFailed});
  made.Send(0, 1, 32, {7, 0});
  made.Receive(1, 0, 32, {0, 7});
  EXPECT_TRUE(made.Checked().findings.empty());
  made.EndBy(1, EndKind::kExit, 1);
  EXPECT_EQ(Only(made.Checked()).kind, Kind::kPairing);
}

TEST(TransfersTest, AReceiveThatFailedOnARankThatEndedBadly) {
  MadeJob made(2);
  made.Send(1, 0, 64);
  made.Receive(0, 1, 64);
  made.Receive(1, 0, 64, {0, 0, kFailed});
  made.EndBy(1, EndKind::kExit, 1);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kPairing);
  EXPECT_NE(Only(report).sentence.find("has no send: sent none"), std::string::npos);
}

TEST(TransfersTest, SendsToEachOtherAreACycle) {
  MadeJob made(2);
  made.Send(0, 1, 1 << 20, kWithin);
  made.Send(1, 0, 1 << 20, kWithin);
  made.Wait(10 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kCycle);
  EXPECT_EQ(finding.blamed, (Ranks{0, 1}));
  EXPECT_NE(finding.sentence.find("rank 0 is in Send float32[1048576] #1 of comm 0 at p2p.py:9 in "
                                  "f and waits for rank 1"),
            std::string::npos)
      << finding.sentence;
}

TEST(TransfersTest, AReceiveHasWhatWasSent) {
  MadeJob made(2);
  made.Send(0, 1, 64, {7, 0});
  made.Receive(1, 0, 64, {0, 8});
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kCorrupt);
  EXPECT_EQ(Only(report).blamed, Ranks{1});
}

}  // namespace
}  // namespace deja::check
