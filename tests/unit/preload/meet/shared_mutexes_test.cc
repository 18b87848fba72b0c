// Mutexes in the program's memory that processes share.
#include "preload/meet/shared_mutexes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include "tests/unit/preload/meet/made_mutex.h"

namespace deja::preload {
namespace {

TEST(SharedMutexes, OneThatIsMarkedIsKnownAnywhereAndStillAMutex) {
  for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK}) {
    pthread_mutex_t mutex = Made(true, false, type);
    SharedMutexes::Mark(&mutex, 7);
    const auto found = SharedMutexes::Find(&mutex);
    EXPECT_NE(found.key, 0u);
    ASSERT_NE(found.order, nullptr);
    EXPECT_EQ(found.order->fetch_add(1), 0u);
    EXPECT_EQ(pthread_mutex_lock(&mutex), 0);
    pthread_mutex_t elsewhere;
    std::memcpy(&elsewhere, &mutex, sizeof elsewhere);
    EXPECT_EQ(SharedMutexes::Find(&elsewhere).key, found.key);
    EXPECT_EQ(SharedMutexes::Find(&elsewhere).order->load(), 1u);
    EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    EXPECT_EQ(pthread_mutex_trylock(&mutex), 0);
    EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    EXPECT_EQ(SharedMutexes::Find(&mutex).key, found.key);
    EXPECT_EQ(pthread_mutex_destroy(&mutex), 0);
  }
}

TEST(SharedMutexes, RobustOnesAndThoseOfThreadsAreNone) {
  for (const auto& [shared, robust] : {std::pair(false, false), {false, true}, {true, true}}) {
    pthread_mutex_t mutex = Made(shared, robust);
    EXPECT_EQ(SharedMutexes::Find(&mutex).key, 0u);
    EXPECT_EQ(pthread_mutex_lock(&mutex), 0);
    EXPECT_EQ(SharedMutexes::Find(&mutex).key, 0u);
    EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    EXPECT_EQ(pthread_mutex_destroy(&mutex), 0);
  }
}

}  // namespace
}  // namespace deja::preload
