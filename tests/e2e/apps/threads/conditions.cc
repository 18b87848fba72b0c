// Waiting: who is woken, whose time is over, who comes last.
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <cerrno>

#include "tests/e2e/apps/threads/behaviours.h"

namespace threads {
namespace {

void SeveralWaiters() {
  std::mutex mutex;
  std::condition_variable turn;
  int given = 0;
  int left = 6;
  Log log;
  RunThreads(7, [&](int me) {
    if (me == 6) {
      std::unique_lock lock(mutex);
      for (int i = 0; i < 300 || left > 0; ++i) {
        ++given;
        turn.notify_one();
        lock.unlock();
        Work(i % 17);
        lock.lock();
      }
      return;
    }
    std::unique_lock lock(mutex);
    for (int i = 0; i < 40; ++i) {
      turn.wait(lock, [&] { return given > 0; });
      --given;
      log.Add(me, given);
    }
    --left;
  });
  log.Print("several waiters");
}

void TimedWaits() {
  std::mutex mutex;
  std::condition_variable changed;
  int value = 0;
  Log log;
  RunThreads(4, [&](int me) {
    for (int i = 0; i < 60; ++i) {
      std::unique_lock lock(mutex);
      if (me == 0) {
        ++value;
        changed.notify_one();
        lock.unlock();
        Nap(150);
        continue;
      }
      const int before = value;
      const bool seen = changed.wait_for(lock, std::chrono::microseconds(100 + 70 * me),
                                         [&] { return value != before; });
      log.Add(me, seen ? value : -value);
    }
  });
  log.Print("timed waits");
}

void Barrier() {
  constexpr int kThreads = 4;
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, kThreads);
  std::mutex mutex;
  Log serial;
  Log arrivals;
  RunThreads(kThreads, [&](int me) {
    for (int round = 0; round < 100; ++round) {
      Work((me * 7 + round) % 23);
      {
        std::lock_guard lock(mutex);
        arrivals.Add(me, round);
      }
      if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) serial.Add(me, round);
      pthread_barrier_wait(&barrier);
    }
  });
  pthread_barrier_destroy(&barrier);
  serial.Print("serial threads");
  arrivals.Print("arrivals");
}

// A latch of a mutex, then a phase whose leader is whoever comes last.
void Latch() {
  std::mutex mutex;
  std::condition_variable open;
  int missing = 0;
  Log log;
  for (int round = 0; round < 40; ++round) {
    missing = 5;
    RunThreads(5, [&](int me) {
      Work((me + round) % 13);
      std::unique_lock lock(mutex);
      log.Add(me, missing);
      if (--missing == 0)
        open.notify_all();
      else
        open.wait(lock, [&] { return missing == 0; });
      log.Add(me, round);
    });
  }
  log.Print("latch");
}

void Semaphores() {
  sem_t free;
  sem_t used;
  sem_init(&free, 0, 3);
  sem_init(&used, 0, 0);
  std::mutex mutex;
  std::vector<int> stack;
  Log log;
  RunThreads(6, [&](int me) {
    for (int i = 0; i < 80; ++i) {
      while (sem_wait(me < 3 ? &free : &used) != 0) continue;
      {
        std::lock_guard lock(mutex);
        if (me < 3) {
          stack.push_back(me * 100 + i);
        } else {
          log.Add(me, stack.back());
          stack.pop_back();
        }
      }
      sem_post(me < 3 ? &used : &free);
    }
  });
  log.Print("semaphores");
}

// A semaphore is the only lock.
void TimedSemaphores() {
  sem_t one;
  sem_init(&one, 0, 1);
  Log log;
  RunThreads(4, [&](int me) {
    int misses = 0;
    for (int i = 0; i < 60; ++i) {
      timespec deadline;
      clock_gettime(CLOCK_REALTIME, &deadline);
      deadline.tv_nsec += 50000L * (me + 1);
      if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_nsec -= 1000000000;
        ++deadline.tv_sec;
      }
      const int rc = me % 2 == 0 ? sem_timedwait(&one, &deadline) : sem_trywait(&one);
      if (rc != 0) {
        ++misses;
        Nap(20);
        continue;
      }
      log.Add(me, misses);
      Nap(30);
      sem_post(&one);
    }
    while (sem_wait(&one) != 0) continue;
    log.Add(me, misses);
    sem_post(&one);
  });
  log.Print("timed semaphores");
}

// The token goes to whoever of those that wait gets it.
void TokenRing() {
  std::mutex mutex;
  std::condition_variable passed;
  int holder = -1;
  int64_t token = 1;
  Log log;
  RunThreads(5, [&](int me) {
    for (int i = 0; i < 60; ++i) {
      {
        std::unique_lock lock(mutex);
        passed.wait(lock, [&] { return holder == -1; });
        holder = me;
      }
      Work(i % 9);
      std::lock_guard lock(mutex);
      token = (token * 31 + me) % 1000003;
      log.Add(me, token);
      holder = -1;
      passed.notify_one();
    }
  });
  log.Print("token ring");
}

}  // namespace

std::vector<Behaviour> ConditionBehaviours() {
  return {{"several_waiters", SeveralWaiters},
          {"timed_waits", TimedWaits},
          {"barrier", Barrier},
          {"latch", Latch},
          {"semaphores", Semaphores},
          {"timed_semaphores", TimedSemaphores},
          {"token_ring", TokenRing}};
}

}  // namespace threads
