// Locks of every kind: who has it next.
#include <pthread.h>

#include <cerrno>
#include <map>
#include <memory>
#include <shared_mutex>
#include <thread>

#include "tests/e2e/apps/threads/behaviours.h"

namespace threads {
namespace {

void LogLines() {
  std::mutex mutex;
  RunThreads(4, [&](int me) {
    for (int i = 0; i < 30; ++i) {
      {
        std::lock_guard lock(mutex);
        std::printf("line %d of thread %d\n", i, me);
      }
      Work((i * 3 + me) % 19);
    }
  });
}

// Objects are numbered in the order in which they are made.
void ObjectIds() {
  static std::mutex mutex;
  static int next = 0;
  struct Object {
    Object() {
      std::lock_guard lock(mutex);
      id = next++;
    }
    int id = 0;
  };
  std::vector<int64_t> sums(5);
  RunThreads(5, [&](int me) {
    std::vector<std::unique_ptr<Object>> objects;
    for (int i = 0; i < 150; ++i) {
      objects.push_back(std::make_unique<Object>());
      sums[static_cast<size_t>(me)] = sums[static_cast<size_t>(me)] * 7 + objects.back()->id;
      Work(i % 7);
    }
  });
  for (const int64_t sum : sums) std::printf("ids %lld\n", static_cast<long long>(sum));
}

void ReaderWriterCache() {
  std::shared_mutex mutex;
  std::map<int, int> cache;
  std::vector<Log> seen(5);
  Log filled;
  RunThreads(5, [&](int me) {
    for (int i = 0; i < 150; ++i) {
      const int key = i % 40;
      int value = -1;
      {
        std::shared_lock lock(mutex);
        const auto it = cache.find(key);
        if (it != cache.end()) value = it->second;
      }
      if (value < 0 || i % 50 == me * 10) {
        std::unique_lock lock(mutex);
        value = cache[key] = me * 1000 + i;
        filled.Add(me, value);
      }
      seen[static_cast<size_t>(me)].Add(value / 1000, value);
      Work(i % 5);
    }
  });
  filled.Print("filled");
  for (const Log& log : seen) log.Print("seen");
}

void TimedReaders() {
  std::shared_timed_mutex mutex;
  int64_t value = 1;
  std::vector<Log> seen(4);
  RunThreads(4, [&](int me) {
    Log& log = seen[static_cast<size_t>(me)];
    for (int i = 0; i < 80; ++i) {
      if (me == 0) {
        std::unique_lock lock(mutex);
        value = value * 3 % 100003;
        Nap(100);
        continue;
      }
      if (me == 1) {
        std::unique_lock lock(mutex, std::chrono::microseconds(80));
        if (lock) value = value * 5 % 100003;
        log.Add(me, lock ? value : -1);
        Nap(50);
        continue;
      }
      if (mutex.try_lock_shared_for(std::chrono::microseconds(50 * me))) {
        log.Add(me, value);
        mutex.unlock_shared();
      } else {
        log.Add(me, -1);
      }
      Nap(20);
    }
  });
  for (const Log& log : seen) log.Print("timed readers");
}

void TryLoops() {
  std::mutex mutex;
  Log log;
  RunThreads(4, [&](int me) {
    for (int i = 0; i < 60; ++i) {
      int tries = 1;
      while (!mutex.try_lock()) {
        ++tries;
        std::this_thread::yield();
      }
      log.Add(me, tries);
      Work(i % 40);
      mutex.unlock();
      if (i % 10 == me) Nap(30);
    }
  });
  log.Print("tries");
}

void TimedMutexes() {
  std::timed_mutex mutex;
  Log log;
  std::vector<int> misses(4);
  RunThreads(4, [&](int me) {
    for (int i = 0; i < 50; ++i) {
      if (!mutex.try_lock_for(std::chrono::microseconds(30 * (me + 1)))) {
        ++misses[static_cast<size_t>(me)];
        continue;
      }
      log.Add(me, misses[static_cast<size_t>(me)]);
      Nap(20 + i % 3 * 20);
      mutex.unlock();
    }
  });
  log.Print("timed mutexes");
  for (const int n : misses) std::printf("misses %d\n", n);
}

void Philosophers() {
  constexpr int kSeats = 5;
  std::mutex forks[kSeats];
  std::mutex table;
  Log log;
  RunThreads(kSeats, [&](int me) {
    for (int i = 0; i < 60; ++i) {
      const std::scoped_lock both(forks[me], forks[(me + 1) % kSeats]);
      {
        std::lock_guard lock(table);
        log.Add(me, i);
      }
      Work(i % 15);
    }
  });
  log.Print("philosophers");
}

// Sums of floating-point numbers have other bits in another order.
void Accounts() {
  struct Account {
    std::mutex mutex;
    double money = 1;
  };
  std::vector<Account> accounts(8);
  RunThreads(4, [&](int me) {
    uint32_t state = static_cast<uint32_t>(me) * 77 + 5;
    for (int i = 0; i < 200; ++i) {
      state = state * 1664525 + 1013904223;
      Account& from = accounts[state >> 29];
      Account& to = accounts[(state >> 29) ^ (1 + (state >> 20) % 7)];
      const std::scoped_lock both(from.mutex, to.mutex);
      const double part = from.money / 3;
      from.money -= part;
      to.money += part * 1.01;
      Work(static_cast<int>(state >> 29));
    }
  });
  for (const Account& account : accounts) std::printf("%.17g\n", account.money);
}

void Recursive() {
  std::recursive_mutex mutex;
  Log log;
  std::function<void(int, int)> enter = [&](int me, int depth) {
    std::lock_guard lock(mutex);
    log.Add(me, depth);
    if (depth > 0) enter(me, depth - 1);
    log.Add(me, -depth);
  };
  RunThreads(4, [&](int me) {
    for (int i = 0; i < 80; ++i) {
      enter(me, i % 4);
      Work(i % 11);
    }
  });
  log.Print("recursive");
}

void SpinLocks() {
  pthread_spinlock_t lock;
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  Log log;
  RunThreads(3, [&](int me) {
    for (int i = 0; i < 300; ++i) {
      if (i % 5 != 0 || pthread_spin_trylock(&lock) != 0) pthread_spin_lock(&lock);
      log.Add(me, i);
      pthread_spin_unlock(&lock);
      Work(i % 7);
    }
  });
  log.Print("spin locks");
}

// Mutexes that say no, and owners that end.
void CarefulMutexes() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t mutex;
  pthread_mutex_init(&mutex, &attributes);
  Log log;
  RunThreads(5, [&](int me) {
    for (int i = 0; i < 40 + me * 10; ++i) {
      const int rc = pthread_mutex_lock(&mutex);
      if (rc == EOWNERDEAD) pthread_mutex_consistent(&mutex);
      log.Add(me, rc);
      if (pthread_mutex_lock(&mutex) != EDEADLK) log.Add(me, -1);
      if (i == 39 && me < 3) return;  // with the mutex
      pthread_mutex_unlock(&mutex);
      Work(i % 9);
    }
  });
  pthread_mutex_destroy(&mutex);
  pthread_mutexattr_destroy(&attributes);
  log.Print("careful mutexes");
}

}  // namespace

std::vector<Behaviour> LockBehaviours() {
  return {{"log_lines", LogLines},
          {"object_ids", ObjectIds},
          {"reader_writer_cache", ReaderWriterCache},
          {"timed_readers", TimedReaders},
          {"try_loops", TryLoops},
          {"timed_mutexes", TimedMutexes},
          {"philosophers", Philosophers},
          {"accounts", Accounts},
          {"recursive", Recursive},
          {"spin_locks", SpinLocks},
          {"careful_mutexes", CarefulMutexes}};
}

}  // namespace threads
