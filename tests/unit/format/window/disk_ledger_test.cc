#include "format/window/disk_ledger.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "format/tail/tail.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

constexpr char kJob[] = "00112233445566778899aabbccddeeff";
constexpr uint64_t kBudget = 1000;
constexpr uint64_t kPool = 500;

class DiskLedgerTest : public ::testing::Test {
 protected:
  std::unique_ptr<DiskLedger> Open() {
    return DiskLedger::Open(dir_.path(), kJob, {kBudget, kPool});
  }
  // A rank of another process, which is gone when this returns.
  void LeaveBehind(uint64_t bytes) {
    const pid_t pid = fork();
    if (pid == 0) {
      const auto ledger = Open();
      ledger->BecomeRank();
      ledger->Publish(bytes);
      _exit(0);
    }
    ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  }

  TempDir dir_;
};

TEST_F(DiskLedgerTest, RanksHaveEqualParts) {
  const auto one = Open();
  one->BecomeRank();
  EXPECT_EQ(one->Share(), 1000u);
  const auto two = Open();
  two->BecomeRank();
  two->Publish(300);
  EXPECT_EQ(one->Share(), 500u);
  EXPECT_EQ(two->Share(), 500u);
}

TEST_F(DiskLedgerTest, ARankDoesNotHaveTheBytesOfChildren) {
  const auto rank = Open();
  rank->BecomeRank();
  const auto child = Open();
  child->Publish(200);
  EXPECT_EQ(rank->Share(), 800u);
  child->Publish(100);
  EXPECT_EQ(rank->Share(), 900u);
}

// Any number of them, each as greedy as it may be, stays within the pool. None is left without
// anything while the others live.
TEST_F(DiskLedgerTest, ChildrenShareAPool) {
  std::vector<std::unique_ptr<DiskLedger>> children;
  uint64_t first_share = 0;
  for (int made = 0; made < 8; ++made) {
    children.push_back(Open());
    for (int round = 0; round < 50; ++round) {
      uint64_t sum = 0;
      for (const auto& child : children) {
        const uint64_t share = child->Share();
        child->Publish(share);
        sum += share;
      }
      if (round > 40) {
        EXPECT_LE(sum, kPool);
      }
    }
    if (made == 0) first_share = children[0]->Share();
  }
  EXPECT_GE(first_share, kPool / 2 - 1);
  for (const auto& child : children) EXPECT_GE(child->Share(), kPool / 10 - 10);
}

TEST_F(DiskLedgerTest, AChildThatBecomesARankTakesItsBytesAlong) {
  const auto rank = Open();
  rank->BecomeRank();
  const auto child = Open();
  child->Publish(200);
  child->BecomeRank();
  EXPECT_EQ(rank->Share(), 500u);
  child->Publish(300);
  EXPECT_EQ(rank->Share(), 500u);
}

TEST_F(DiskLedgerTest, BytesOfAnEndedRankStayCounted) {
  LeaveBehind(400);
  const auto rank = Open();
  rank->BecomeRank();
  rank->Publish(490);
  EXPECT_EQ(rank->Share(), 600u) << "it counts no more than what it has left";
  LeaveBehind(0);
  const auto other = Open();
  other->BecomeRank();
  other->Publish(100);
  other->Leave();
  other->Leave();
  EXPECT_EQ(Open()->Share(), 250u);
  other->Publish(150);  // its end is written later
  rank->Publish(0);
  EXPECT_LE(rank->Share(), 450u);
}

// Also before anybody has dropped what is too much.
TEST_F(DiskLedgerTest, ARankThatComesAgainHasHalf) {
  LeaveBehind(900);
  const auto child = Open();
  child->Publish(100);
  const auto again = Open();
  again->BecomeRank(900);
  const DiskLedger::Gone known = again->OfGoneRanks();
  EXPECT_EQ(known.all, 900u);
  EXPECT_EQ(known.earlier, 900u);
  EXPECT_EQ(again->Correct(known, {900, 900}), 450u) << "half of what children leave";
  EXPECT_EQ(again->Share(), 450u);
  EXPECT_EQ(again->RoomForGone(false), 450u);
  // As WindowSweep does, a little more than it must.
  again->AddOfGone(false, -500);
  EXPECT_EQ(again->Correct(again->OfGoneRanks(), {400, 400}), 0u);
  EXPECT_EQ(again->Share(), 500u);
  again->AddOfGone(false, 200);  // of another rank, which has not come again
  EXPECT_EQ(again->Share(), 300u);
  EXPECT_EQ(again->Correct({400, 400}, {400, 400}), 0u) << "from before that";
  EXPECT_EQ(again->Share(), 300u);
}

TEST_F(DiskLedgerTest, BytesFoundOnTheDiskCount) {
  const auto rank = Open();
  rank->BecomeRank(300);
  EXPECT_EQ(rank->Share(), 1000u) << "of an earlier recording of the job: nobody has seen it";
  EXPECT_EQ(rank->Correct(rank->OfGoneRanks(), {300, 300}), 0u);
  EXPECT_EQ(rank->Share(), 700u);
  EXPECT_EQ(rank->Correct(rank->OfGoneRanks(), {900, 800}), 300u);
  EXPECT_EQ(rank->Share(), 400u);
}

TEST_F(DiskLedgerTest, CompletingAFolderStaysWithinIt) {
  const std::string tail = dir_ / (TailNamePrefix(kJob) + "123-89abcdef.tail");
  EXPECT_EQ(DiskLedger::OfTail(tail), nullptr) << "there was no budget";
  const auto rank = Open();
  rank->BecomeRank();
  rank->Publish(300);
  const auto child = Open();
  child->Publish(150);
  const auto gone = DiskLedger::OfTail(tail);
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(gone->RoomForGone(true), 350u);
  EXPECT_EQ(gone->RoomForGone(false), 550u);
  gone->AddOfGone(true, 100);
  EXPECT_EQ(gone->RoomForGone(true), 250u);
  gone->AddOfGone(true, -50);
  gone->AddOfGone(false, 600);
  EXPECT_EQ(gone->RoomForGone(true), 0u);
  EXPECT_EQ(rank->Share(), 200u);
  EXPECT_EQ(DiskLedger::OfTail("no tail"), nullptr);
}

TEST_F(DiskLedgerTest, NoMoreIsGivenBackThanThereWas) {
  const auto ledger = Open();
  ledger->AddOfGone(true, 100);
  ledger->AddOfGone(true, -5000);
  EXPECT_EQ(ledger->RoomForGone(true), kPool);
  EXPECT_EQ(ledger->ChildrenExcess(), 0u);
  ledger->AddOfGone(true, kPool / 4 * 3 + 100);
  EXPECT_EQ(ledger->ChildrenExcess(), kPool / 4 * 3 + 100 - kPool / 2);
}

TEST_F(DiskLedgerTest, AFolderThatCannotHoldOneHasNone) {
  EXPECT_EQ(DiskLedger::Open("/nowhere/at/all", kJob, {}), nullptr);
  EXPECT_EQ(DiskLedger::Open("", kJob, {}), nullptr);
  EXPECT_EQ(DiskLedger::Open(dir_.path(), "", {}), nullptr);
  FILE* file = fopen((dir_ / DiskLedgerName(kJob)).c_str(), "we");
  fputs("something else entirely", file);
  fclose(file);
  EXPECT_EQ(Open(), nullptr);
}

}  // namespace
}  // namespace deja::format
