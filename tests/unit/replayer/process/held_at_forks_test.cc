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
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        ++first;
        for (std::atomic<int> i{0}; i < 1000; ++i) {
        }
        ++second;
      }
      for (std::atomic<int> i{0}; i < 1000; ++i) {
      }
    }
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(first == second && mutex.try_lock() ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "fork " << i;
  }
  ends = true;
  other.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace deja::replayer
