// What an acquisition of a lock costs: prints "NAME NS" lines. lock_cost.py runs it with and
// without Deja. A second thread is there all along, so that an order is kept.
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// Median of some runs.
void Measure(const char* name, int64_t count, const std::function<void()>& body) {
  std::vector<uint64_t> took;
  for (int i = 0; i < 9; ++i) {
    const uint64_t begin = Now();
    body();
    took.push_back(Now() - begin);
    const timespec pause{0, 20000000};  // what was recorded is written meanwhile
    nanosleep(&pause, nullptr);
  }
  std::nth_element(took.begin(), took.begin() + 4, took.end());
  std::printf("%s %.1f\n", name, static_cast<double>(took[4]) / static_cast<double>(count));
}

void RunTogether(int threads, const std::function<void()>& body) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back(body);
  for (std::thread& thread : all) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t count = argc > 1 ? std::atoll(argv[1]) : 1000000;
  const int64_t burst = 20000;  // no more than a thread's ring has room for
  std::mutex over;
  over.lock();
  std::thread second([&] { over.lock(); });
  std::mutex mutex;
  std::shared_mutex shared;
  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  Measure("mutex", burst, [&] {
    for (int64_t i = 0; i < burst; ++i) std::lock_guard hold(mutex);
  });
  Measure("mutex_without_a_pause", count, [&] {
    for (int64_t i = 0; i < count; ++i) std::lock_guard hold(mutex);
  });
  Measure("read_lock", burst, [&] {
    for (int64_t i = 0; i < burst; ++i) std::shared_lock hold(shared);
  });
  Measure("semaphore", burst, [&] {
    for (int64_t i = 0; i < burst; ++i) {
      sem_wait(&semaphore);
      sem_post(&semaphore);
    }
  });
  // Two threads that do something else in between, as programs do.
  Measure("two_threads", count / 5, [&] {
    uint64_t together = 0;
    RunTogether(2, [&] {
      volatile uint64_t own = 0;
      for (int64_t i = 0; i < count / 10; ++i) {
        for (int n = 0; n < 100; ++n) own = own * 3 + 1;
        std::lock_guard hold(mutex);
        ++together;
      }
    });
  });
  // Each acquisition is one that the other thread has waited for.
  Measure("ping_pong", count / 50, [&] {
    std::condition_variable changed;
    int64_t next = 0;
    int64_t name = 0;
    RunTogether(2, [&] {
      std::unique_lock hold(mutex);
      const int64_t me = name++;
      for (int64_t i = 0; i < count / 100; ++i) {
        changed.wait(hold, [&] { return next % 2 == me; });
        ++next;
        changed.notify_one();
      }
    });
  });
  over.unlock();
  second.join();
}
