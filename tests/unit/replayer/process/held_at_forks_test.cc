#include "replayer/process/held_at_forks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace deja::replayer {
namespace {

TEST(HeldAtForksTest, AChildGetsWholeWhatTheMutexGuards) {
  static std::mutex mutex;  // HoldAtForks keeps it
  HoldAtForks(mutex);
  volatile uint64_t first = 0;
  volatile uint64_t second = 0;
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) {
      const std::lock_guard<std::mutex> lock(mutex);
      first = first + 1;
      for (volatile int i = 0; i < 1000; i = i + 1) {
      }
      second = second + 1;
    }
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(first == second && mutex.try_lock() ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "fork " << i;
  }
  ends = true;
  other.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace deja::replayer
