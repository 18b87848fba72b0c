// A thread that computes is busy, one that waits is not.
#include "replayer/process/busy_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace deja::replayer {
namespace {

TEST(BusyThreadsTest, OneThatComputesIsBusyUntilItWaits) {
  std::atomic<bool> computes{true};
  std::atomic<bool> has_begun{false};
  std::atomic<int> word{0};
  std::thread thread([&] {
    while (computes.load()) has_begun.store(true);
    word.wait(0);
  });
  while (!has_begun.load()) std::this_thread::yield();
  EXPECT_TRUE(IsAnotherThreadBusy());
  computes.store(false);
  while (IsAnotherThreadBusy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  word.store(1);
  word.notify_one();
  thread.join();
}

}  // namespace
}  // namespace deja::replayer
