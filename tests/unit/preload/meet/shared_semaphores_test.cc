// Semaphores in the program's memory that processes share.
#include "preload/meet/shared_semaphores.h"

#include <gtest/gtest.h>

#include <cstring>

namespace deja::preload {
namespace {

TEST(SharedSemaphores, OneThatIsMarkedIsKnownAnywhere) {
  sem_t semaphore;
  ASSERT_EQ(sem_init(&semaphore, 1, 2), 0);
  SharedSemaphores::Mark(&semaphore, 7);
  const auto found = SharedSemaphores::Find(&semaphore);
  EXPECT_NE(found.key, 0u);
  ASSERT_NE(found.order, nullptr);
  EXPECT_EQ(found.order->fetch_add(1), 0u);
  // The same memory as another process has it.
  sem_t elsewhere;
  std::memcpy(&elsewhere, &semaphore, sizeof elsewhere);
  EXPECT_EQ(SharedSemaphores::Find(&elsewhere).key, found.key);
  EXPECT_EQ(SharedSemaphores::Find(&elsewhere).order->load(), 1u);
  EXPECT_EQ(sem_wait(&semaphore), 0);
  EXPECT_EQ(sem_post(&semaphore), 0);
  EXPECT_EQ(SharedSemaphores::Find(&semaphore).key, found.key);
  EXPECT_EQ(sem_destroy(&semaphore), 0);
}

TEST(SharedSemaphores, OneOfThreadsIsNone) {
  sem_t semaphore{};
  ASSERT_EQ(sem_init(&semaphore, 0, 1), 0);
  SharedSemaphores::Mark(&semaphore, 7);
  EXPECT_EQ(SharedSemaphores::Find(&semaphore).key, 0u);
  sem_destroy(&semaphore);
}

TEST(SharedSemaphores, AnUnmarkedOneIsNone) {
  sem_t semaphore{};
  ASSERT_EQ(sem_init(&semaphore, 1, 1), 0);
  EXPECT_EQ(SharedSemaphores::Find(&semaphore).key, 0u);
  sem_destroy(&semaphore);
}

}  // namespace
}  // namespace deja::preload
