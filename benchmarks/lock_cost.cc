// What an acquisition of a lock costs: prints "NAME NS" lines. lock_cost.py runs it with and
// without Deja. A second thread is there all along, so that an order is kept.
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

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

void Report(const char* name, uint64_t begin, int64_t count) {
  std::printf("%s %.1f\n", name, static_cast<double>(Now() - begin) / static_cast<double>(count));
}

// Least of some runs: what other processes take is not ours.
void Measure(const char* name, int64_t count, const std::function<void()>& body) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const uint64_t begin = Now();
    body();
    least = std::min(least, Now() - begin);
  }
  Report(name, Now() - least, count);
}

void RunTogether(int threads, const std::function<void()>& body) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back(body);
  for (std::thread& thread : all) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t count = argc > 1 ? std::atoll(argv[1]) : 1000000;
  std::mutex over;
  over.lock();
  std::thread second([&] { over.lock(); });
  std::mutex mutex;
  std::shared_mutex shared;
  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  Measure("mutex", count, [&] {
    for (int64_t i = 0; i < count; ++i) std::lock_guard hold(mutex);
  });
  Measure("read_lock", count, [&] {
    for (int64_t i = 0; i < count; ++i) std::shared_lock hold(shared);
  });
  Measure("semaphore", count, [&] {
    for (int64_t i = 0; i < count; ++i) {
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
