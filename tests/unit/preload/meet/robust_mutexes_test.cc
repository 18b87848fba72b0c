// Robust mutexes that processes share: where their order is, and that they stay mutexes.
#include "preload/meet/robust_mutexes.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "tests/support/temp_dir.h"
#include "tests/unit/preload/meet/made_mutex.h"

namespace deja::preload {
namespace {

class RobustMutexesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    table_ = PipeTable::Map(dir_ / "pipes");
    ASSERT_NE(table_, nullptr);
  }

  TempDir dir_;
  PipeTable* table_ = nullptr;
};

TEST_F(RobustMutexesTest, OneThatIsMarkedIsKnownAndStillAMutex) {
  constexpr int kTypes[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                            PTHREAD_MUTEX_ADAPTIVE_NP};
  for (const int type : kTypes) {
    pthread_mutex_t mutex = Made(true, true, type);
    EXPECT_FALSE(RobustMutexes::IsMarked(&mutex));
    ASSERT_TRUE(RobustMutexes::Mark(&mutex, static_cast<uint64_t>(70 + type), *table_));
    std::thread([&] { EXPECT_EQ(pthread_mutex_lock(&mutex), 0); }).join();
    EXPECT_EQ(pthread_mutex_trylock(&mutex), EOWNERDEAD);
    EXPECT_EQ(pthread_mutex_consistent(&mutex), 0);
    EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    ASSERT_TRUE(RobustMutexes::IsMarked(&mutex));
    const auto found = RobustMutexes::Find(&mutex, *table_);
    EXPECT_EQ(found.key, static_cast<uint64_t>(70 + type));
    ASSERT_NE(found.order, nullptr);
    EXPECT_EQ(found.order->fetch_add(1), 0u);
    EXPECT_EQ(RobustMutexes::Find(&mutex, *table_).order->load(), 1u);
    EXPECT_EQ(pthread_mutex_destroy(&mutex), 0);
  }
}

TEST_F(RobustMutexesTest, OthersAreNone) {
  for (const auto& [shared, robust] : {std::pair(false, false), {false, true}, {true, false}}) {
    pthread_mutex_t mutex = Made(shared, robust);
    EXPECT_FALSE(RobustMutexes::IsMarked(&mutex));
  }
}

TEST_F(RobustMutexesTest, AFullTableTakesNoMore) {
  pthread_mutex_t mutex = Made(true, true);
  for (uint32_t i = 0; i < PipeTable::kMutexes; ++i) EXPECT_EQ(table_->AddMutex(i + 1), i);
  EXPECT_FALSE(RobustMutexes::Mark(&mutex, 7, *table_));
  EXPECT_FALSE(RobustMutexes::IsMarked(&mutex));
}

TEST_F(RobustMutexesTest, AnOwnerThatIsSaidToBeDeadLeavesItToItsFinder) {
  pthread_mutex_t mutex = Made(true, true);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(pthread_mutex_lock(&mutex), 0);
    RobustMutexes::SetOwnerDied(&mutex);
    EXPECT_EQ(pthread_mutex_consistent(&mutex), 0);
    EXPECT_EQ(pthread_mutex_consistent(&mutex), EINVAL);
    EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
  }
  ASSERT_EQ(pthread_mutex_lock(&mutex), 0);
  RobustMutexes::SetOwnerDied(&mutex);
  EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
  EXPECT_EQ(pthread_mutex_lock(&mutex), ENOTRECOVERABLE);
}

}  // namespace
}  // namespace deja::preload
