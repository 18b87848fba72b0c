// Children of the test that wait for something, or for nothing that comes.
#include "cli/replay/watch/standstill.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cli/replay/watch/process_waits.h"
#include "common/os/activity_count.h"
#include "common/runtime/own_thread_name.h"
#include "tests/support/temp_dir.h"

namespace deja::cli {
namespace {

using State = Standstill::State;
using std::chrono::milliseconds;

#if defined(__SANITIZE_THREAD__)
constexpr bool kOwnThreads = true;
#else
constexpr bool kOwnThreads = false;
#endif

class StandstillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kOwnThreads) GTEST_SKIP() << "ThreadSanitizer has a thread that wakes up in each process";
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

  pid_t Start(const std::function<void()>& body) {
    const pid_t child = fork();
    EXPECT_GE(child, 0);
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      body();
      _exit(0);
    }
    children_.push_back(child);
    return child;
  }

  // A pipe that the child alone has.
  static int ReadEndOfAnOwnPipe() {
    int ends[2];
    if (pipe(ends) != 0) _exit(2);
    return ends[0];
  }
  static void ReadForGood() {
    char byte = 0;
    (void)!read(ReadEndOfAnOwnPipe(), &byte, 1);
  }

  // The most that a watch finds until it finds `wanted`, or for a second where that is nothing.
  State WatchFor(State wanted) {
    constexpr milliseconds kLook{50};
    standstill_.emplace(std::vector<WatchedReplay>{{7, children_.front(), scratch_}},
                        std::set<pid_t>{}, OwnOpenFiles(),
                        Standstill::Pace{kLook, milliseconds(200), milliseconds(400)},
                        [this](uint32_t) { return recorded_silence_; });
    State most = State::kMoves;
    const milliseconds patience{wanted == State::kMoves ? 1000 : 60000};
    for (milliseconds waited{0}; waited < patience; waited += kLook) {
      std::this_thread::sleep_for(kLook);
      most = std::max(most, standstill_->Look());
      if (wanted != State::kMoves && most >= wanted) break;
    }
    return most;
  }

  milliseconds recorded_silence_{0};
  std::string scratch_ = "/nonexistent";
  std::vector<pid_t> children_;
  std::optional<Standstill> standstill_;
};

TEST_F(StandstillTest, AReadOfAPipeThatNoneWritesTo) {
  Start(ReadForGood);
  EXPECT_EQ(WatchFor(State::kStands), State::kStands);
  ASSERT_EQ(standstill_->Describe().size(), 1u);
  const std::string line = standstill_->Describe()[0];
  EXPECT_EQ(line.rfind("rank 7 (process " + std::to_string(children_[0]) + ") reads pipe:[", 0), 0u)
      << line;
  EXPECT_NE(line.find("; its other end is with itself only"), std::string::npos) << line;
  standstill_->End();
  int status = 0;
  ASSERT_EQ(waitpid(children_[0], &status, 0), children_[0]);
  EXPECT_TRUE(WIFSIGNALED(status));
  children_.clear();
}

TEST_F(StandstillTest, AParentThatWaitsForAChildThatPollsForGood) {
  Start([] {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pollfd own{ReadEndOfAnOwnPipe(), POLLIN, 0};
      poll(&own, 1, -1);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  });
  EXPECT_EQ(WatchFor(State::kStands), State::kStands);
  std::string all;
  for (const std::string& line : standstill_->Describe()) all += line + "\n";
  EXPECT_NE(all.find("waits for a child to end"), std::string::npos) << all;
  EXPECT_NE(all.find("a child of rank 7 (process "), std::string::npos) << all;
  EXPECT_NE(all.find(") waits for pipe:["), std::string::npos) << all;
}

TEST_F(StandstillTest, AWaitForDataFromOutsideIsNoStandstill) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Start([&] {
    char byte = 0;
    (void)!read(ends[0], &byte, 1);
  });
  EXPECT_EQ(WatchFor(State::kMoves), State::kMoves);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(StandstillTest, ASleepThatWasNotRecordedIsSilence) {
  Start([] { std::this_thread::sleep_for(std::chrono::hours(1)); });
  EXPECT_EQ(WatchFor(State::kSilent), State::kSilent);
  EXPECT_FALSE(standstill_->IsHung());
  const std::vector<std::string> lines = standstill_->Describe();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].ends_with(") sleeps")) << lines[0];
  while (!standstill_->IsHung()) {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_LE(standstill_->Look(), State::kSilent);
  }
  EXPECT_EQ(standstill_->DescribeHang().reason.rfind("nothing that was recorded happened", 0), 0u)
      << standstill_->DescribeHang().reason;
}

TEST_F(StandstillTest, ASleepThatWasRecordedIsNoStandstill) {
  recorded_silence_ = std::chrono::hours(1);
  Start([] { std::this_thread::sleep_for(std::chrono::hours(1)); });
  EXPECT_EQ(WatchFor(State::kMoves), State::kMoves);
}

TEST_F(StandstillTest, AFirstThreadThatLooksAgainAndAgainIsSilent) {
  Start([] {
    for (;;) std::this_thread::sleep_for(milliseconds(1));
  });
  EXPECT_EQ(WatchFor(State::kSilent), State::kSilent);
}

TEST_F(StandstillTest, OneThatDoesWhatWasRecordedMeanwhileMoves) {
  const TempDir folder;
  scratch_ = folder.path();
  Start([&] {
    std::atomic<uint64_t>* served = MapActivityCount(scratch_);
    if (served == nullptr) _exit(2);
    for (;;) {
      std::this_thread::sleep_for(milliseconds(1));
      served->fetch_add(1);
    }
  });
  EXPECT_EQ(WatchFor(State::kMoves), State::kMoves);
  EXPECT_NE(SumOfActivity(scratch_), 0u);
}

TEST_F(StandstillTest, AnAlarmMayStillCome) {
  Start([] {
    signal(SIGALRM, [](int) {});
    ReadForGood();
  });
  EXPECT_EQ(WatchFor(State::kMoves), State::kMoves);
}

TEST_F(StandstillTest, OneThreadThatComputesIsEnough) {
  Start([] {
    std::thread([] {
      for (std::atomic<uint64_t> rounds{0};;) ++rounds;
    }).detach();
    ReadForGood();
  });
  EXPECT_EQ(WatchFor(State::kMoves), State::kMoves);
}

TEST_F(StandstillTest, AThreadThatLooksFromTimeToTimeIdles) {
  Start([] {
    std::thread([] {
      for (;;) std::this_thread::sleep_for(milliseconds(1));
    }).detach();
    ReadForGood();
  });
  EXPECT_EQ(WatchFor(State::kIdles), State::kIdles);
}

TEST_F(StandstillTest, ThreadsOfDejaAreNotTheProgram) {
  Start([] {
    std::thread([] {
      prctl(PR_SET_NAME, kOwnThreadName);
      for (;;) std::this_thread::sleep_for(milliseconds(1));
    }).detach();
    ReadForGood();
  });
  EXPECT_EQ(WatchFor(State::kStands), State::kStands);
}

}  // namespace
}  // namespace deja::cli
