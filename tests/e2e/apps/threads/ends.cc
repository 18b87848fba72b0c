// Ends in the middle: of the process, of a thread, of a fork's parent.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "tests/e2e/apps/threads/behaviours.h"

namespace threads {
namespace {

// The process ends while its threads go on.
void ExitInTheMiddle() {
  static std::mutex mutex;
  static std::condition_variable changed;
  static int64_t count = 0;
  for (int i = 0; i < 3; ++i) {
    std::thread([i] {
      for (int n = 0;; ++n) {
        std::unique_lock lock(mutex);
        count = (count * 3 + i) % 1000003;
        if (n % 16 == i) changed.wait_for(lock, std::chrono::microseconds(200));
        lock.unlock();
        Nap(50);
      }
    }).detach();
  }
  Nap(20000);
  std::lock_guard lock(mutex);
  std::printf("count %lld\n", static_cast<long long>(count));
  std::fflush(stdout);
  _exit(0);
}

struct Cancelled {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  int waiting = 0;
  Log log;
};

// Threads that are cancelled while they wait: their handlers have the mutex.
void CancelledWaits() {
  static Cancelled shared;
  static int names[4] = {0, 1, 2, 3};
  pthread_t all[4];
  for (int& name : names) {
    pthread_create(
        &all[name], nullptr,
        [](void* argument) -> void* {
          const int me = *static_cast<int*>(argument);
          pthread_mutex_lock(&shared.mutex);
          shared.log.Add(me, ++shared.waiting);
          pthread_cleanup_push(
              [](void* who) {
                shared.log.Add(*static_cast<int*>(who), -1);
                pthread_mutex_unlock(&shared.mutex);
              },
              argument);
          for (;;) pthread_cond_wait(&shared.never, &shared.mutex);
          pthread_cleanup_pop(0);
        },
        &name);
  }
  for (bool all_wait = false; !all_wait; Nap(100)) {
    pthread_mutex_lock(&shared.mutex);
    all_wait = shared.waiting == 4;
    pthread_mutex_unlock(&shared.mutex);
  }
  for (pthread_t& thread : all) {
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
  }
  pthread_mutex_lock(&shared.mutex);
  shared.log.Print("cancelled");
  pthread_mutex_unlock(&shared.mutex);
}

// A child has an order of its own, which begins with it.
void Forked() {
  std::mutex mutex;
  Log log;
  const auto race = [&] {
    RunThreads(4, [&](int me) {
      for (int i = 0; i < 60; ++i) {
        {
          std::lock_guard lock(mutex);
          log.Add(me, i);
        }
        Work(i % 13);
      }
    });
  };
  race();
  const pid_t child = fork();
  race();
  if (child != 0) waitpid(child, nullptr, 0);
  log.Print(child == 0 ? "child" : "parent");
  std::fflush(stdout);
  if (child == 0) _exit(0);
}

// Two threads take a lock, the first one first; if it does not come, it waits for good.
void TakeInTurn(bool first_comes) {
  int told[2];
  int never[2];
  if (pipe(told) != 0 || pipe(never) != 0) std::abort();
  std::mutex mutex;
  Log log;
  const auto await = [](int fd) {
    char byte = 0;
    if (read(fd, &byte, 1) != 1) std::abort();
  };
  std::thread first([&] {
    if (!first_comes) await(never[0]);
    {
      std::lock_guard lock(mutex);
      log.Add(1);
    }
    if (write(told[1], "x", 1) != 1) std::abort();
  });
  std::thread second([&] {
    if (first_comes) await(told[0]);
    std::lock_guard lock(mutex);
    log.Add(2);
  });
  second.join();
  first.join();
  log.Print("in turn");
}

}  // namespace

std::vector<Behaviour> EndBehaviours() {
  return {{"exit_in_the_middle", ExitInTheMiddle},
          {"cancelled_waits", CancelledWaits},
          {"forked", Forked},
          {"both_come", [] { TakeInTurn(true); }},
          {"one_stays_away", [] { TakeInTurn(false); }}};
}

}  // namespace threads
