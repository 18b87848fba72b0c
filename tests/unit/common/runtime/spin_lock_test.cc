#include "common/runtime/spin_lock.h"

#include <gtest/gtest.h>

namespace deja {
namespace {

TEST(SpinLockTest, OneAtATime) {
  SpinLock lock;
  EXPECT_TRUE(lock.TryLock());
  EXPECT_FALSE(lock.TryLock());
  EXPECT_FALSE(lock.LockBriefly());
  lock.Unlock();
  EXPECT_TRUE(lock.TryLock());
}

TEST(SpinLockTest, AParentsLockIsFreeInTheChild) {
  SpinLock lock;
  lock.Lock();
  g_forks.fetch_add(1);
  EXPECT_TRUE(lock.TryLock());
  EXPECT_FALSE(lock.TryLock());
  lock.Unlock();
  EXPECT_TRUE(lock.TryLock());
}

}  // namespace
}  // namespace deja
