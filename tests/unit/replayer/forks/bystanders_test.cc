#include "replayer/forks/bystanders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace deja::replayer {
namespace {

using std::chrono::milliseconds;

// What `image` returns in a copy of this process whose threads are there again; 100: they cannot be
// made. As Forks makes one, without the C library's fork.
template <typename Image>
int InImage(Image image) {
  pid_t pid = -1;
  {
    const Bystanders::Stop others;
    EXPECT_STREQ(others.reason().text(), "");
    if (!others.reason().empty()) return -1;
    int* tid = nullptr;
    prctl(PR_GET_TID_ADDRESS, &tid);
    pid = static_cast<pid_t>(syscall(SYS_clone, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD,
                                     nullptr, nullptr, tid, 0));
    if (pid == 0) {
      if (!Bystanders::MakeAgain()) syscall(SYS_exit_group, 100);
      Bystanders::LetGo();
      alarm(60);
      syscall(SYS_exit_group, image());
    }
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// A thread that adds to a number of its own whenever it is asked to.
class Adder {
 public:
  Adder() : thread_([this] { Run(); }) {}
  ~Adder() {
    if (thread_.joinable()) Join();
  }
  int Add(int what) {
    std::unique_lock<std::mutex> lock(mutex_);
    what_ = what;
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !asked_; });
    return sum_;
  }
  void Join() {
    Add(0);
    thread_.join();
  }
  pthread_t handle() { return thread_.native_handle(); }

 private:
  void Run() {
    thread_local int t_sum = 0;
    for (bool more = true; more;) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return asked_; });
      more = what_ != 0;
      sum_ = t_sum += what_;
      asked_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int what_ = 0;
  int sum_ = 0;
  bool asked_ = false;
  std::thread thread_;
};

class BystandersTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer does not know threads that are made again by clone";
#endif
  }
};

TEST_F(BystandersTest, ThreadsGoOnInAnImageAndInTheProcess) {
  Adder first;
  Adder second;
  EXPECT_EQ(first.Add(3), 3);
  for (int i = 0; i < 5; ++i) {
    const int before = first.Add(1);
    const int problem = InImage([&] {
      if (first.Add(10) != before + 10 || first.Add(1) != before + 11) return 1;
      if (second.Add(2) != i * 5 + 2) return 2;
      first.Join();
      second.Join();
      return 0;
    });
    EXPECT_EQ(problem, 0);
    EXPECT_EQ(first.Add(0x100), before + 0x100) << "the image has changed the process";
    EXPECT_EQ(second.Add(5), i * 5 + 5);
  }
}

TEST_F(BystandersTest, AnImageOfAnImage) {
  Adder adder;
  EXPECT_EQ(adder.Add(1), 1);
  const int problem = InImage([&] {
    if (adder.Add(1) != 2) return 1;
    const int inner = InImage([&] { return adder.Add(1) == 3 ? 0 : 2; });
    return inner != 0 ? inner : (adder.Add(7) == 9 ? 0 : 3);
  });
  EXPECT_EQ(problem, 0);
}

// The next stop is made before some of them are where they were.
TEST_F(BystandersTest, ThreadsThatAreHardlyThereAgainAreStopped) {
  std::vector<std::unique_ptr<Adder>> adders;
  for (int i = 0; i < 12; ++i) adders.push_back(std::make_unique<Adder>());
  for (const auto& adder : adders) adder->Add(1);
  for (int i = 0; i < 10; ++i) {
    const int problem = InImage([&] {
      for (int stops = 0; stops < 3; ++stops) const Bystanders::Stop others;
      for (const auto& adder : adders)
        if (adder->Add(1) != 2) return 2;
      return 0;
    });
    EXPECT_EQ(problem, 0);
  }
}

TEST_F(BystandersTest, AThreadIsKnownByItsNewNumber) {
  Adder adder;
  pthread_setname_np(adder.handle(), "adder");
  const long self = syscall(SYS_gettid);
  const int problem = InImage([&] {
    if (pthread_kill(adder.handle(), 0) != 0) return 1;
    char name[16] = {};
    if (pthread_getname_np(adder.handle(), name, sizeof name) != 0 || std::string(name) != "adder")
      return 2;
    return Bystanders::NewNumber(static_cast<int>(self)) == syscall(SYS_gettid) ? 0 : 3;
  });
  EXPECT_EQ(problem, 0);
  EXPECT_EQ(pthread_kill(adder.handle(), 0), 0);
}

// Each of these ends with EINTR when a handler has run, were it not begun again.
TEST_F(BystandersTest, AWaitIsNotSeenToBeInterrupted) {
  std::atomic<int> interrupted = 0;
  std::atomic<bool> stop = false;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const auto check = [&](int result) { interrupted += result < 0 && errno == EINTR ? 1 : 0; };
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop) check(poll(nullptr, 0, 20));
  });
  threads.emplace_back([&] {
    const timespec moment{0, 20'000'000};
    while (!stop) check(nanosleep(&moment, nullptr));
  });
  threads.emplace_back([&] {
    while (!stop) {
      timespec end;
      clock_gettime(CLOCK_REALTIME, &end);
      end.tv_sec += 1;
      check(sem_timedwait(&semaphore, &end));
    }
  });
  for (int i = 0; i < 20; ++i) {
    const Bystanders::Stop others;
    std::this_thread::sleep_for(milliseconds(1));
  }
  const int problem = InImage([&] {
    stop = true;
    sem_post(&semaphore);
    for (std::thread& thread : threads) thread.join();
    return interrupted.load();
  });
  EXPECT_EQ(problem, 0);
  stop = true;
  sem_post(&semaphore);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(interrupted, 0);
}

TEST_F(BystandersTest, AThreadThatComputesIsRefusedAndGoesOn) {
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> turns = 0;
  std::thread computes([&] {
    while (!stop) turns.store(turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  });
  while (turns == 0) std::this_thread::yield();
  {
    const Bystanders::Stop others;
    EXPECT_STREQ(others.reason().text(), "another thread of it computes at its steps");
  }
  const uint64_t before = turns;
  while (turns == before) std::this_thread::yield();
  stop = true;
  computes.join();
}

TEST_F(BystandersTest, ThreadsThatBeginAndEndMeanwhile) {
  std::atomic<bool> stop = false;
  std::thread maker([&] {
    while (!stop) std::thread([] {}).join();
  });
  int images = 0;
  for (int i = 0; i < 30; ++i) {
    const Bystanders::Stop others;
    images += others.reason().empty() ? 1 : 0;
  }
  stop = true;
  maker.join();
  RecordProperty("images", images);
  Adder adder;
  EXPECT_EQ(InImage([&] { return adder.Add(4) == 4 ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace deja::replayer
