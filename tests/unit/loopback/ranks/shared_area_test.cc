#include "loopback/ranks/shared_area.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

namespace deja::loopback {
namespace {

TEST(SharedAreaTest, TwoMappingsAreTheSameMemory) {
  auto one = SharedArea::Create(3);
  ASSERT_TRUE(one) << one.error().message;
  auto two = SharedArea::Map(dup(one->fd()), 3);
  ASSERT_TRUE(two) << two.error().message;
  one->Slot(kResultBoard, 2, 7)[kSlotBytes - 1] = 'x';
  one->ChannelBytes(2, 1)[one->channel_bytes() - 1] = 'y';
  one->cell(2).boards[kControlBoard].published = 77;
  one->channel(1, 2).written = 78;
  EXPECT_EQ(two->Slot(kResultBoard, 2, 7)[kSlotBytes - 1], 'x');
  EXPECT_EQ(two->ChannelBytes(2, 1)[two->channel_bytes() - 1], 'y');
  EXPECT_EQ(two->cell(2).boards[kControlBoard].published, 77u);
  EXPECT_EQ(two->channel(1, 2).written, 78u);
  EXPECT_EQ(std::memcmp(one->header().nonce, two->header().nonce, 16), 0);
}

TEST(SharedAreaTest, ALimitOfFileSizesIsAnErrorAndNoSignal) {
  // In a process of its own: the limit stays.
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    rlimit limit{100 << 10, 100 << 10};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    auto area = SharedArea::Create(2);
    if (area || area.error().sys_errno != EFBIG) _exit(3);
    // A signal of someone else's goes on waiting.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    raise(SIGXFSZ);
    area = SharedArea::Create(2);
    sigpending(&set);
    _exit(!area && sigismember(&set, SIGXFSZ) == 1 ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SharedAreaTest, AnAreaOfAnotherSizeIsRefused) {
  auto area = SharedArea::Create(3);
  ASSERT_TRUE(area);
  auto wrong = SharedArea::Map(dup(area->fd()), 4);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kForeign);
}

TEST(SharedAreaTest, NothingOverlaps) {
  for (int n : {1, 2, 5, 16, 40}) {
    auto area = SharedArea::Create(n);
    ASSERT_TRUE(area);
    std::set<std::pair<const char*, const char*>> spans;
    auto add = [&](const void* start, size_t bytes) {
      const char* at = static_cast<const char*>(start);
      spans.insert({at, at + bytes});
    };
    add(&area->header(), sizeof(AreaHeader));
    for (int i = 0; i < n; ++i) {
      add(&area->cell(i), sizeof(RankCell));
      for (int board = 0; board < kBoards; ++board)
        for (uint64_t round = 0; round < kSlots; ++round)
          add(area->Slot(board, i, round), kSlotBytes);
      for (int j = 0; j < n; ++j) {
        add(&area->channel(i, j), sizeof(Channel));
        add(area->ChannelBytes(i, j), area->channel_bytes());
      }
    }
    const char* end = nullptr;
    for (const auto& [from, to] : spans) {
      ASSERT_GE(from, end);
      end = to;
    }
    const char* base = reinterpret_cast<const char*>(&area->header());
    EXPECT_LE(end, base + area->size());
  }
}

TEST(SharedAreaTest, AMovedAreaKeepsItsMemory) {
  auto made = SharedArea::Create(2);
  ASSERT_TRUE(made);
  made->cell(1).doorbell = 9;
  SharedArea area = std::move(*made);
  EXPECT_FALSE(made->valid());
  EXPECT_EQ(area.cell(1).doorbell, 9u);
}

}  // namespace
}  // namespace deja::loopback
