// Queues between threads: who takes what.
#include <deque>
#include <future>
#include <queue>
#include <thread>

#include "tests/e2e/apps/threads/behaviours.h"

namespace threads {
namespace {

constexpr int kWorkers = 4;

void WorkQueue() {
  std::mutex mutex;
  std::condition_variable filled;
  std::deque<int> items;
  bool closed = false;
  Log log;
  std::thread producer([&] {
    for (int i = 0; i < 400; ++i) {
      {
        std::lock_guard lock(mutex);
        items.push_back(i);
      }
      filled.notify_one();
      Work(i % 20);
    }
    std::lock_guard lock(mutex);
    closed = true;
    filled.notify_all();
  });
  RunThreads(kWorkers, [&](int worker) {
    for (;;) {
      std::unique_lock lock(mutex);
      filled.wait(lock, [&] { return closed || !items.empty(); });
      if (items.empty()) return;
      const int item = items.front();
      items.pop_front();
      log.Add(worker, item);
      lock.unlock();
      Work(item % 30);
    }
  });
  producer.join();
  log.Print("work queue");
}

void BoundedBuffer() {
  constexpr size_t kRoom = 3;
  std::mutex mutex;
  std::condition_variable filled;
  std::condition_variable emptied;
  std::deque<int> items;
  Log puts;
  Log takes;
  RunThreads(6, [&](int me) {
    for (int i = 0; i < 100; ++i) {
      std::unique_lock lock(mutex);
      if (me < 3) {
        emptied.wait(lock, [&] { return items.size() < kRoom; });
        items.push_back(me * 1000 + i);
        puts.Add(me, i);
        filled.notify_one();
      } else {
        filled.wait(lock, [&] { return !items.empty(); });
        takes.Add(me, items.front());
        items.pop_front();
        emptied.notify_one();
      }
      lock.unlock();
      Work(i % 11);
    }
  });
  puts.Print("puts");
  takes.Print("takes");
}

void PriorityQueue() {
  std::mutex mutex;
  std::priority_queue<std::pair<int, int>> queue;
  Log log;
  RunThreads(kWorkers, [&](int me) {
    uint32_t state = static_cast<uint32_t>(me) + 1;
    for (int i = 0; i < 200; ++i) {
      state = state * 1664525 + 1013904223;
      {
        std::lock_guard lock(mutex);
        queue.emplace(static_cast<int>(state >> 16), me);
        if (i % 3 == 2) {
          log.Add(me, queue.top().first * 10 + queue.top().second);
          queue.pop();
        }
      }
      Work(static_cast<int>(state >> 28));
    }
  });
  log.Print("priority queue");
}

// Tasks that put tasks into the same pool; results go through futures.
class Pool {
 public:
  explicit Pool(int workers) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i] { Run(i); });
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    filled_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  std::future<int> Submit(std::function<int()> task) {
    std::packaged_task<int()> packaged(std::move(task));
    std::future<int> result = packaged.get_future();
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(packaged));
    filled_.notify_one();
    return result;
  }
  Log log;

 private:
  void Run(int worker) {
    for (int n = 0;; ++n) {
      std::unique_lock lock(mutex_);
      filled_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      std::packaged_task<int()> task = std::move(tasks_.front());
      tasks_.pop_front();
      log.Add(worker, n);
      lock.unlock();
      task();
    }
  }
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::packaged_task<int()>> tasks_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

void ThreadPool() {
  Pool pool(kWorkers);
  std::mutex mutex;
  double sum = 0;
  std::vector<std::future<int>> results;
  for (int i = 0; i < 150; ++i) {
    results.push_back(pool.Submit([&, i] {
      Work(i % 25);
      std::lock_guard lock(mutex);
      sum = sum * 0.75 + i;  // depends on who comes first
      return i;
    }));
  }
  int total = 0;
  for (std::future<int>& result : results) total += result.get();
  std::lock_guard lock(mutex);
  std::printf("sum %.17g of %d\n", sum, total);
  pool.log.Print("pool");
}

// Consumers that give up after a moment and come again.
void ImpatientConsumers() {
  std::mutex mutex;
  std::condition_variable filled;
  std::deque<int> items;
  bool closed = false;
  Log log;
  RunThreads(4, [&](int me) {
    if (me == 0) {
      for (int i = 0; i < 60; ++i) {
        Nap(i % 5 * 100);
        std::lock_guard lock(mutex);
        items.push_back(i);
        filled.notify_one();
      }
      std::lock_guard lock(mutex);
      closed = true;
      return;
    }
    for (;;) {
      std::unique_lock lock(mutex);
      const auto status = filled.wait_for(lock, std::chrono::microseconds(200 * me));
      log.Add(me, status == std::cv_status::timeout ? -1 : -2);
      if (!items.empty()) {
        log.Add(me, items.front());
        items.pop_front();
      } else if (closed) {
        return;
      }
    }
  });
  log.Print("impatient consumers");
}

}  // namespace

std::vector<Behaviour> QueueBehaviours() {
  return {{"work_queue", WorkQueue},
          {"bounded_buffer", BoundedBuffer},
          {"priority_queue", PriorityQueue},
          {"thread_pool", ThreadPool},
          {"impatient_consumers", ImpatientConsumers}};
}

}  // namespace threads
