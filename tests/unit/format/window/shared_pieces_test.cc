#include "format/window/shared_pieces.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <thread>
#include <vector>

#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

using Claimed = SharedPieces::Claimed;

constexpr char kPiecesJob[] = "00112233445566778899aabbccddeeff";

class SharedPiecesTest : public ::testing::Test {
 protected:
  std::unique_ptr<SharedPieces> Open(uint32_t copies = 1) {
    return SharedPieces::Open(dir_.path(), kPiecesJob, copies);
  }

  TempDir dir_;
  const Hash128 hash_ = HashOf("some bytes");
};

TEST_F(SharedPiecesTest, OneKeepsWhatTheOthersNeedNot) {
  const auto one = Open();
  const auto two = Open();
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, nullptr);
  EXPECT_EQ(one->id().size(), 16u);
  EXPECT_EQ(one->id(), two->id());
  EXPECT_EQ(one->Claim(hash_, 0), Claimed::kOurs);
  EXPECT_EQ(two->Claim(hash_, 0), Claimed::kElsewhere);
  EXPECT_EQ(two->Claim(hash_, 1), Claimed::kOurs) << "another piece";
  EXPECT_EQ(two->Claim(HashOf("others"), 0), Claimed::kOurs);
  one->Keep(hash_, 0);
  EXPECT_EQ(two->Claim(hash_, 0), Claimed::kKept);
  EXPECT_EQ(one->Claim(hash_, 0), Claimed::kKept);
}

TEST_F(SharedPiecesTest, AReleasedPieceMayBeTakenByAnother) {
  const auto one = Open();
  const auto two = Open();
  EXPECT_EQ(one->Claim(hash_, 0), Claimed::kOurs);
  one->Release(hash_, 0);
  EXPECT_EQ(two->Claim(hash_, 0), Claimed::kOurs);
  EXPECT_EQ(one->Claim(hash_, 0), Claimed::kElsewhere);
}

TEST_F(SharedPiecesTest, AThreadThatDiesInBetweenIsNotWaitedForForever) {
  const auto one = Open();
  const auto two = Open();
  EXPECT_EQ(one->Claim(hash_, 0), Claimed::kOurs);
  EXPECT_EQ(two->Await(hash_, 0), Claimed::kElsewhere);
  two->Keep(hash_, 0);  // has done it itself
  EXPECT_EQ(one->Claim(hash_, 0), Claimed::kKept);
}

TEST_F(SharedPiecesTest, AwaitSeesWhatIsKeptMeanwhile) {
  const auto one = Open();
  const auto two = Open();
  EXPECT_EQ(one->Claim(hash_, 0), Claimed::kOurs);
  std::thread keeper([&] {
    usleep(2000);
    one->Keep(hash_, 0);
  });
  EXPECT_EQ(two->Await(hash_, 0), Claimed::kKept);
  keeper.join();
}

TEST_F(SharedPiecesTest, SoManyKeepACopyAsIsAskedFor) {
  std::vector<std::unique_ptr<SharedPieces>> ranks;
  for (int i = 0; i < 6; ++i) ranks.push_back(Open(2));
  int ours = 0;
  for (const auto& rank : ranks) {
    if (rank->Claim(hash_, 0) != Claimed::kOurs) continue;
    ++ours;
    rank->Keep(hash_, 0);
  }
  EXPECT_EQ(ours, 2);
}

TEST_F(SharedPiecesTest, NoRankReliesOnOneThatCannotKeepMore) {
  const auto one = Open();
  const auto two = Open();
  EXPECT_EQ(one->Claim(hash_, 0), Claimed::kOurs);
  one->Keep(hash_, 0);
  one->Close();
  EXPECT_EQ(two->Claim(hash_, 0), Claimed::kOurs);
  EXPECT_EQ(two->Claim(HashOf("others"), 0), Claimed::kOurs);
}

TEST_F(SharedPiecesTest, ForgetsTheOldestAndNothingElse) {
  const auto one = Open();
  constexpr uint64_t kMany = 400000;  // more than it holds
  for (uint64_t piece = 0; piece < kMany; ++piece) {
    ASSERT_EQ(one->Claim(hash_, piece), Claimed::kOurs) << piece;
    one->Keep(hash_, piece);
    if (piece >= 100) {
      ASSERT_EQ(one->Claim(hash_, piece - 100), Claimed::kKept) << piece;
    }
  }
  EXPECT_EQ(one->Claim(hash_, 0), Claimed::kOurs);
}

TEST_F(SharedPiecesTest, RanksBeginAtDifferentPieces) {
  std::vector<std::unique_ptr<SharedPieces>> ranks;
  for (int i = 0; i < 4; ++i) ranks.push_back(Open());
  std::vector<uint64_t> first;
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->FirstPiece(1), 0u);
    first.push_back(rank->FirstPiece(64));
  }
  EXPECT_EQ(first, (std::vector<uint64_t>{0, 16, 32, 48}));
}

TEST_F(SharedPiecesTest, AFolderThatCannotHoldATableHasNone) {
  EXPECT_EQ(SharedPieces::Open("/nowhere/at/all", kPiecesJob, 1), nullptr);
  EXPECT_EQ(SharedPieces::Open(dir_.path(), kPiecesJob, 0), nullptr);
  EXPECT_EQ(SharedPieces::Open(dir_.path(), "", 1), nullptr);
  const std::string path = dir_ / SharedPiecesName(kPiecesJob);
  ASSERT_EQ(symlink("/etc/passwd", path.c_str()), 0);
  EXPECT_EQ(Open(), nullptr);
  unlink(path.c_str());
  FILE* file = fopen(path.c_str(), "w");
  fputs("something else entirely", file);
  fclose(file);
  EXPECT_EQ(Open(), nullptr);
}

TEST_F(SharedPiecesTest, ManyAtOnceKeepEachPieceAtLeastOnceAndHardlyMore) {
  constexpr int kRanks = 4;
  constexpr uint64_t kPieces = 20000;
  std::vector<std::atomic<int>> kept(kPieces);
  std::vector<std::thread> threads;
  for (int i = 0; i < kRanks; ++i) {
    threads.emplace_back([&, shared = Open()] {
      for (uint64_t piece = 0; piece < kPieces; ++piece) {
        const Claimed claimed = shared->Await(hash_, piece);
        if (claimed == Claimed::kKept) {
          ASSERT_GE(kept[piece].load(), 1);
          continue;
        }
        kept[piece].fetch_add(1);
        shared->Keep(hash_, piece);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t copies = 0;
  for (const auto& count : kept) {
    EXPECT_GE(count.load(), 1);
    copies += static_cast<uint64_t>(count.load());
  }
  EXPECT_LT(copies, kPieces + kPieces / 10);
}

}  // namespace
}  // namespace deja::format
