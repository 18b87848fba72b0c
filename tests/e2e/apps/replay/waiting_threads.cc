// A training loop whose other threads wait between its steps. They wait for a condition variable, a
// semaphore, a time, or the end of another thread. What they do counts in its state. In gdb a
// replay of it is gone back in by images of the process.
//
//   replay_waiting_threads [--steps N] [--computes-at STEP]
//
// From the step of --computes-at on, one more thread never waits.
#include <nccl.h>
#include <pthread.h>
#include <semaphore.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "include/deja.h"
#include "tests/e2e/apps/replay/check.h"

namespace {

constexpr size_t kSize = 500;
constexpr int kPool = 3;

thread_local uint64_t t_own = 7;  // of each thread: all that it has been given
pthread_key_t g_key;
std::atomic<int> g_destroyed = 0;

uint64_t Mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 1099511628211ull;
}

__attribute__((noinline)) void Tell(int rank, const char* what, int number, uint64_t trail,
                                    uint64_t others) {
  std::printf("rank %d %s %d: %lx %lx\n", rank, what, number, static_cast<unsigned long>(trail),
              static_cast<unsigned long>(others));
}

__attribute__((noinline)) uint64_t WorkOn(uint64_t value) {
  t_own = Mix(t_own, value);
  return t_own;
}

// Work for several threads at once, as a pool of OpenMP does it.
class Pool {
 public:
  Pool() {
    for (int i = 0; i < kPool; ++i) threads_.emplace_back([this, i] { Run(i); });
  }
  ~Pool() {
    Give(0);
    for (std::thread& thread : threads_) thread.join();
  }
  uint64_t Give(uint64_t value) {
    std::unique_lock<std::mutex> lock(mutex_);
    value_ = value;
    ++round_;
    left_ = kPool;
    more_.notify_all();
    done_.wait(lock, [this] { return left_ == 0; });
    uint64_t all = 0;
    for (uint64_t result : results_) all = Mix(all, result);
    return all;
  }

 private:
  void Run(int number) {
    pthread_setspecific(g_key, this);
    uint64_t seen = 0;
    for (bool more = true; more;) {
      std::unique_lock<std::mutex> lock(mutex_);
      more_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      more = value_ != 0;
      results_[number] = WorkOn(value_ + static_cast<uint64_t>(number));
      if (--left_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::condition_variable done_;
  std::array<uint64_t, kPool> results_{};
  uint64_t value_ = 1;
  uint64_t round_ = 0;
  int left_ = 0;
  std::vector<std::thread> threads_;
};

// One thread that a semaphore wakes, and which answers by an atomic that is waited for.
class Echo {
 public:
  Echo() : thread_([this] { Run(); }) { pthread_setname_np(thread_.native_handle(), "echo"); }
  ~Echo() {
    Ask(0);
    thread_.join();
  }
  uint64_t Ask(uint64_t value) {
    asked_ = value;
    const uint32_t before = answers_.load();
    sem_post(&wake_);
    answers_.wait(before);
    return answer_;
  }

 private:
  void Run() {
    for (bool more = true; more;) {
      while (sem_wait(&wake_) != 0) std::exit(3);  // an EINTR would be Deja's
      more = asked_ != 0;
      answer_ = WorkOn(asked_);
      answers_.fetch_add(1);
      answers_.notify_all();
    }
  }

  struct Semaphore {
    sem_t semaphore;
    Semaphore() { sem_init(&semaphore, 0, 0); }
    sem_t* operator&() { return &semaphore; }  // NOLINT
  } wake_;
  uint64_t asked_ = 1;
  uint64_t answer_ = 0;
  std::atomic<uint32_t> answers_ = 0;
  std::thread thread_;
};

}  // namespace

int main(int argc, char** argv) {
  int steps = 30;
  int computes_at = -1;
  for (int i = 1; i + 1 < argc; i += 2)
    (std::string(argv[i]) == "--steps" ? steps : computes_at) = std::atoi(argv[i + 1]);
  const int rank = std::atoi(std::getenv("RANK"));
  pthread_key_create(&g_key, [](void*) { ++g_destroyed; });
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, std::atoi(std::getenv("WORLD_SIZE")), id, rank));
  std::vector<float> values(kSize, 1.0f);
  uint64_t trail = 1469598103934665603ull;
  uint64_t others = 0;
  std::atomic<bool> stop = false;
  std::atomic<int> interrupted = 0;
  std::thread sleeper([&] {
    while (!stop) {
      const timespec moment{0, 20'000'000};
      if (nanosleep(&moment, nullptr) != 0) ++interrupted;
    }
  });
  std::thread joiner([&] { sleeper.join(); });  // waits for the end of another one
  std::thread computes;
  {
    Pool pool;
    Echo echo;
    for (int step = 0; step < steps; ++step) {
      deja_step(static_cast<uint64_t>(step));
      Tell(rank, "step", step, trail, others);
      if (step == computes_at) {
        std::atomic<bool> begun = false;
        computes = std::thread([&] {
          begun = true;
          for (volatile uint64_t turns = 0; !stop;) turns = turns + 1;
        });
        while (!begun) std::this_thread::yield();
      }
      trail = Mix(trail, pool.Give(static_cast<uint64_t>(step) + 1));
      others = Mix(others, echo.Ask(trail | 1));
      std::thread([&] { trail = Mix(trail, WorkOn(trail)); }).join();
      CHECK(ncclAllReduce(values.data(), values.data(), kSize, ncclFloat, ncclSum, comm, nullptr));
      for (float& value : values) value = value / 2 + 1;
      trail = Mix(trail, static_cast<uint64_t>(values[0] * 1000));
    }
  }
  stop = true;
  joiner.join();
  if (computes.joinable()) computes.join();
  std::printf("rank %d ends with %lx %lx, %d destroyed, %d interrupted\n", rank,
              static_cast<unsigned long>(trail), static_cast<unsigned long>(others),
              g_destroyed.load(), interrupted.load());
  CHECK(ncclCommDestroy(comm));
  return 0;
}
