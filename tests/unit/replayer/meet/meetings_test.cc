// A child without a recording at a semaphore that is free.
#include "replayer/meet/meetings.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "tests/support/temp_dir.h"

namespace deja::replayer {
namespace {

class UnrecordedAcquire : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(sem_init(&semaphore_, 0, 1), 0);
    call_.key = 7;
    call_.semaphore = &semaphore_;
    call_.order = &order_;
    call_.context = &real_;
    call_.real = [](preload::AcquireCall& call, void* real) {
      ++*static_cast<int*>(real);
      call.result = sem_wait(call.semaphore);
    };
  }
  void TearDown() override { sem_destroy(&semaphore_); }

  void ExpectNothingTaken(int error) {
    ServeUnrecordedAcquire(scratch_.path(), call_);
    EXPECT_EQ(call_.result, -1);
    EXPECT_EQ(call_.error, error);
    int value = 0;
    ASSERT_EQ(sem_getvalue(&semaphore_, &value), 0);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(real_, 0);
  }

  TempDir scratch_;
  sem_t semaphore_{};
  std::atomic<uint32_t> order_{0};
  preload::AcquireCall call_;
  int real_ = 0;  // calls of the real function
};

TEST_F(UnrecordedAcquire, AnAttemptFails) {
  call_.tries = true;
  ExpectNothingTaken(EAGAIN);
}

TEST_F(UnrecordedAcquire, AnAttemptAtAMutexFailsAsOneDoes) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  call_.semaphore = nullptr;
  call_.mutex = &mutex;
  call_.tries = true;
  ExpectNothingTaken(EBUSY);
  EXPECT_EQ(pthread_mutex_trylock(&mutex), 0);
  pthread_mutex_unlock(&mutex);
}

// It has the mutex, and gives it back only in the real call.
TEST_F(UnrecordedAcquire, AWaitForAConditionVariableIsLive) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  call_.semaphore = nullptr;
  call_.mutex = &mutex;
  call_.gives_back = true;
  call_.real = [](preload::AcquireCall& call, void* real) {
    ++*static_cast<int*>(real);
    call.result = 0;
  };
  ServeUnrecordedAcquire(scratch_.path(), call_);
  EXPECT_EQ(real_, 1);
}

TEST_F(UnrecordedAcquire, AWaitLastsUntilASignal) {
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &action, &old), 0);
  // One may come before the wait has begun.
  itimerval soon{};
  soon.it_value.tv_usec = soon.it_interval.tv_usec = 50000;
  ASSERT_EQ(setitimer(ITIMER_REAL, &soon, nullptr), 0);
  ExpectNothingTaken(EINTR);
  soon = {};
  ASSERT_EQ(setitimer(ITIMER_REAL, &soon, nullptr), 0);
  sigaction(SIGALRM, &old, nullptr);
}

}  // namespace
}  // namespace deja::replayer
