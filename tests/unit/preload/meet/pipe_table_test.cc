// What processes note about their pipes.
#include "preload/meet/pipe_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/temp_dir.h"

namespace deja::preload {
namespace {

class PipeTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    table_ = PipeTable::Map(dir_ / "pipes");
    ASSERT_NE(table_, nullptr);
  }
  TempDir dir_;
  PipeTable* table_ = nullptr;
};

TEST_F(PipeTableTest, APipeIsFoundByItsInode) {
  EXPECT_EQ(table_->Find(0), nullptr);
  EXPECT_EQ(table_->Find(77), nullptr);
  PipeSlot* slot = table_->Add(77, 5, 78);
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(table_->Find(77), slot);
  EXPECT_EQ(slot->key.load(), 5u);
  EXPECT_EQ(slot->peer.load(), 78u);
}

TEST_F(PipeTableTest, AnInodeThatComesAgainIsANewPipe) {
  table_->Add(77, 5, 0)->several.store(PipeSlot::kWriters);
  PipeSlot* again = table_->Add(77, 6, 0);
  EXPECT_EQ(table_->Find(77), again);
  EXPECT_EQ(again->key.load(), 6u);
  EXPECT_EQ(again->several.load(), 0u);
}

TEST_F(PipeTableTest, TheOldestGiveWayToNewOnes) {
  constexpr uint64_t kMany = 100000;
  for (uint64_t inode = 1; inode <= kMany; ++inode)
    ASSERT_NE(table_->Add(inode, inode, 0), nullptr);
  EXPECT_EQ(table_->Find(1), nullptr);
  for (uint64_t inode = kMany - 16; inode <= kMany; ++inode) {
    ASSERT_NE(table_->Find(inode), nullptr) << inode;
    EXPECT_EQ(table_->Find(inode)->key.load(), inode);
  }
}

TEST_F(PipeTableTest, AFifoThatManyOpenAtOnceHasOneEntryThatBeginsOnce) {
  constexpr uint64_t kThreads = 4;
  for (uint64_t inode = 100; inode < 600; ++inode) {
    std::atomic<uint64_t> ready{0};
    std::array<PipeSlot*, kThreads> found{};
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        ++ready;
        while (ready.load() < kThreads) std::this_thread::yield();
        found[i] = table_->FindOrAdd(inode, inode + 1);
        found[i]->written.fetch_add(1);
      });
    for (std::thread& thread : threads) thread.join();
    for (PipeSlot* slot : found) ASSERT_EQ(slot, found[0]) << inode;
    ASSERT_EQ(found[0]->written.load(), kThreads) << inode;
    ASSERT_EQ(found[0]->key.load(), inode + 1);
  }
}

TEST_F(PipeTableTest, AForkedChildHasIt) {
  table_->Add(77, 5, 0);
  const pid_t child = fork();
  if (child == 0) {
    PipeSlot* slot = table_->Find(77);
    if (slot != nullptr) slot->several.store(PipeSlot::kReaders);
    _exit(slot == nullptr ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(table_->Find(77)->several.load(), PipeSlot::kReaders);
}

TEST_F(PipeTableTest, EachThreadHasAToken) {
  const uint32_t own = table_->OwnToken();
  EXPECT_NE(own, 0u);
  EXPECT_EQ(table_->OwnToken(), own);
  uint32_t other = 0;
  std::thread([&] { other = table_->OwnToken(); }).join();
  EXPECT_NE(other, 0u);
  EXPECT_NE(other, own);
}

}  // namespace
}  // namespace deja::preload
