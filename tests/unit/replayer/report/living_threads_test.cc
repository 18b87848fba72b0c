#include "replayer/report/living_threads.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>
#include <vector>

namespace deja::replayer {
namespace {

// A sanitizer starts a thread of its own with the program's first one.
uint64_t ThreadsBefore() {
  std::thread([] {}).join();
  return LivingThreads();
}

TEST(LivingThreads, CountsThreadsThatRun) {
  const uint64_t before = ThreadsBefore();
  std::latch begun(4);
  std::latch end(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      begun.count_down();
      end.wait();
    });
  }
  begun.arrive_and_wait();
  EXPECT_EQ(LivingThreads(), before + 3);
  end.count_down();
  for (std::thread& thread : threads) thread.join();
}

// The kernel lists a joined thread for a moment: one in some hundreds here.
TEST(LivingThreads, DoesNotCountJoinedThreads) {
  const uint64_t before = ThreadsBefore();
  for (int i = 0; i < 3000; ++i) {
    std::thread([] {}).join();
    ASSERT_EQ(LivingThreads(), before) << "after thread " << i;
  }
}

}  // namespace
}  // namespace deja::replayer
