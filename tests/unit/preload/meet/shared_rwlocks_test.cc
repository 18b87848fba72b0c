// Reader-writer locks that processes share: what lies beside what the C library keeps of them.
#include "preload/meet/shared_rwlocks.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>

namespace deja::preload {
namespace {

pthread_rwlock_t MadeRwlock(int shared) {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setpshared(&attributes, shared);
  pthread_rwlock_t lock;
  pthread_rwlock_init(&lock, &attributes);
  pthread_rwlockattr_destroy(&attributes);
  return lock;
}

TEST(SharedRwlocksTest, AMarkedOneIsFoundAndGoesOnWorking) {
  pthread_rwlock_t lock = MadeRwlock(PTHREAD_PROCESS_SHARED);
  SharedRwlocks::Mark(&lock, 0x1234);
  const SharedRwlocks::Found found = SharedRwlocks::Find(&lock);
  ASSERT_NE(found.key, 0u);
  EXPECT_EQ(found.key & 0xffff, 0x1234u);
  ASSERT_NE(found.order, nullptr);
  EXPECT_EQ(pthread_rwlock_rdlock(&lock), 0);
  EXPECT_EQ(found.order->fetch_add(1), 0u);
  EXPECT_EQ(pthread_rwlock_rdlock(&lock), 0);
  EXPECT_EQ(found.order->fetch_add(1), 1u);
  EXPECT_EQ(pthread_rwlock_trywrlock(&lock), EBUSY);
  EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
  EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
  EXPECT_EQ(pthread_rwlock_wrlock(&lock), 0);
  EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
  EXPECT_EQ(SharedRwlocks::Find(&lock).key, found.key);
  EXPECT_EQ(found.order->load(), 2u);
  EXPECT_EQ(pthread_rwlock_destroy(&lock), 0);
}

TEST(SharedRwlocksTest, OthersAreNotFound) {
  const pthread_rwlock_t own = MadeRwlock(PTHREAD_PROCESS_PRIVATE);
  EXPECT_EQ(SharedRwlocks::Find(&own).key, 0u);
  const pthread_rwlock_t unmarked = MadeRwlock(PTHREAD_PROCESS_SHARED);
  EXPECT_EQ(SharedRwlocks::Find(&unmarked).key, 0u);
}

}  // namespace
}  // namespace deja::preload
