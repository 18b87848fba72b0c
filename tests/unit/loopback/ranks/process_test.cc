#include "loopback/ranks/process.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace deja::loopback {
namespace {

// A child that waits until a message ends it.
class Child {
 public:
  Child() {
    EXPECT_EQ(pipe(pipe_), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(pipe_[1]);
      char byte;
      _exit(read(pipe_[0], &byte, 1) < 0 ? 1 : 0);
    }
    close(pipe_[0]);
  }
  ~Child() {
    End();
    if (!reaped_) waitpid(pid_, nullptr, 0);
  }
  void End() {
    if (pipe_[1] >= 0) close(pipe_[1]);
    pipe_[1] = -1;
  }
  void Reap() {
    waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }
  [[nodiscard]] ProcessId id() const {
    ProcessId id = ThisProcess();
    id.pid = pid_;
    id.start_time = 0;
    return id;
  }

 private:
  int pipe_[2] = {-1, -1};
  pid_t pid_ = -1;
  bool reaped_ = false;
};

bool EndsSoon(const ProcessId& id) {
  for (int i = 0; i < 5000; ++i) {
    if (HasEnded(id)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(HasEndedTest, AChildIsAliveUntilItEnds) {
  Child child;
  EXPECT_FALSE(HasEnded(child.id()));
  child.End();
  EXPECT_TRUE(EndsSoon(child.id()));  // a zombie has ended
}

TEST(HasEndedTest, AProcessThatIsGoneBeforeTheFirstLookHasEnded) {
  Child child;
  child.End();
  child.Reap();
  EXPECT_TRUE(HasEnded(child.id()));
}

TEST(HasEndedTest, AnotherProcessOfTheSameNumberIsNotIt) {
  Child child;
  ProcessId id = child.id();
  id.start_time = 1;  // the kernel was not up yet
  EXPECT_TRUE(HasEnded(id));
}

TEST(HasEndedTest, AProcessOutlivesItsFirstThread) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t pid = fork();
  if (pid == 0) {
    pthread_t thread;
    auto other = [](void* fd) -> void* {
      usleep(50000);
      char byte = 'r';
      if (write(static_cast<int>(reinterpret_cast<intptr_t>(fd)), &byte, 1) != 1) _exit(1);
      usleep(20000000);
      _exit(0);
    };
    pthread_create(&thread, nullptr, other,
                   reinterpret_cast<void*>(static_cast<intptr_t>(ready[1])));
    syscall(SYS_exit, 0);  // this thread only
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ProcessId id = ThisProcess();
  id.pid = pid;
  id.start_time = 0;
  EXPECT_FALSE(HasEnded(id));
  kill(pid, SIGKILL);
  EXPECT_TRUE(EndsSoon(id));
  waitpid(pid, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(HasEndedTest, AnUnknownProcessIsAlive) {
  Child child;
  ProcessId id = child.id();
  id.pid_namespace += 1;
  child.End();
  child.Reap();
  EXPECT_FALSE(HasEnded(id));
}

TEST(DoorbellTest, WakesOneOfSeveral) {
  std::atomic<uint32_t> words[3] = {};
  std::thread ringer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    words[2].fetch_add(1);
    WakeDoorbell(words[2]);
  });
  std::vector<Doorbell> bells;
  for (auto& word : words) bells.push_back({&word, 0});
  uint64_t start = MonotonicNanos();
  while (words[2].load() == 0 && MonotonicNanos() - start < 20000000000u)
    WaitForDoorbells(bells, 10000000000u);
  EXPECT_EQ(words[2].load(), 1u);
  ringer.join();
}

TEST(DoorbellTest, ARingBeforeTheWaitIsNotMissed) {
  std::atomic<uint32_t> word{5};
  Doorbell bell{&word, 4};
  uint64_t start = MonotonicNanos();
  WaitForDoorbells({&bell, 1}, 20000000000u);
  EXPECT_LT(MonotonicNanos() - start, 10000000000u);
}

}  // namespace
}  // namespace deja::loopback
