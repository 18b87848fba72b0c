#include "common/runtime/own_heap.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "common/runtime/own_mapping.h"

namespace deja {
namespace {

TEST(OwnHeapTest, BlocksOfAllSizesHoldWhatWasAskedFor) {
  for (size_t bytes = 0; bytes < (size_t{9} << 20); bytes = bytes * 5 / 4 + 1) {
    void* memory = OwnAllocate(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 16, 0U);
    EXPECT_GE(OwnBytes(memory), bytes);
    EXPECT_TRUE(IsOwnMemory(memory));
    std::memset(memory, 0xa5, OwnBytes(memory));
    OwnFree(memory);
  }
}

TEST(OwnHeapTest, Alignments) {
  for (size_t alignment = 1; alignment <= 65536; alignment *= 2)
    for (const size_t bytes : {size_t{1}, size_t{100}, size_t{5} << 20}) {
      void* memory = OwnAllocate(bytes, alignment);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0U);
      EXPECT_GE(OwnBytes(memory), bytes);
      std::memset(memory, 1, bytes);
      OwnFree(memory);
    }
}

TEST(OwnHeapTest, AnImpossibleSizeIsNull) {
  EXPECT_EQ(OwnAllocate(SIZE_MAX), nullptr);
  EXPECT_EQ(OwnAllocate(SIZE_MAX / 8), nullptr);
}

TEST(OwnHeapTest, FreedBlocksAreTakenAgain) {
  void* first = OwnAllocate(1000);
  OwnFree(first);
  void* second = OwnAllocate(1001);
  EXPECT_EQ(second, first);
  OwnFree(second);
}

TEST(OwnHeapTest, ThreadsNeverShareABlock) {
  auto work = [](unsigned char mark) {
    std::vector<unsigned char*> mine(64);
    for (int i = 0; i < 50000; ++i) {
      unsigned char*& slot = mine[static_cast<size_t>(i) % mine.size()];
      if (slot != nullptr) {
        EXPECT_EQ(slot[0], mark);
        EXPECT_EQ(slot[39], mark);
        OwnFree(slot);
      }
      slot = static_cast<unsigned char*>(OwnAllocate(40));
      std::memset(slot, mark, 40);
    }
    for (unsigned char* one : mine) OwnFree(one);
  };
  std::vector<std::thread> threads;
  for (unsigned char mark = 1; mark <= 4; ++mark) threads.emplace_back(work, mark);
  for (std::thread& thread : threads) thread.join();
}

TEST(OwnMappingTest, IsInItsRange) {
  void* memory = OwnAllocate(size_t{8} << 20);
  const bool inside = reinterpret_cast<uintptr_t>(memory) - kOwnRangeStart < kOwnRangeBytes;
  EXPECT_EQ(inside, kHasOwnRange);
  OwnFree(memory);
}

}  // namespace
}  // namespace deja
