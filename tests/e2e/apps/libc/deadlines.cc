// Waits 50 ms by the wall clock in every way, and says which of them came back too early or too
// late.
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <functional>
#include <mutex>

namespace {

timespec In50Ms(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += 50000000;
  if (t.tv_nsec >= 1000000000) {
    t.tv_nsec -= 1000000000;
    ++t.tv_sec;
  }
  return t;
}

void Time(const char* what, const std::function<void(const timespec&)>& wait,
          clockid_t clock = CLOCK_REALTIME) {
  auto start = std::chrono::steady_clock::now();
  wait(In50Ms(clock));
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                  start)
                .count();
  printf("%s: %s\n", what, ms < 40 ? "too early" : ms > 20000 ? "too late" : "waited");
}

}  // namespace

int main() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  Time("cond", [&](const timespec& t) { pthread_cond_timedwait(&condition, &mutex, &t); });
  Time("cond clock",
       [&](const timespec& t) { pthread_cond_clockwait(&condition, &mutex, CLOCK_REALTIME, &t); });
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_t monotonic;
  pthread_cond_init(&monotonic, &attributes);
  Time(
      "cond monotonic", [&](const timespec& t) { pthread_cond_timedwait(&monotonic, &mutex, &t); },
      CLOCK_MONOTONIC);
  Time("mutex", [&](const timespec& t) { pthread_mutex_timedlock(&mutex, &t); });
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  Time("sem", [&](const timespec& t) { sem_timedwait(&semaphore, &t); });
  Time("nanosleep",
       [&](const timespec& t) { clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, nullptr); });
  Time("nanosleep relative", [&](const timespec&) {
    timespec span{0, 50000000};
    clock_nanosleep(CLOCK_REALTIME, 0, &span, nullptr);
  });
  mtx_t c11_mutex;
  cnd_t c11_condition;
  mtx_init(&c11_mutex, mtx_timed);
  cnd_init(&c11_condition);
  mtx_lock(&c11_mutex);
  Time("c11 cond", [&](const timespec& t) { cnd_timedwait(&c11_condition, &c11_mutex, &t); });
  std::mutex m;
  std::condition_variable cv;
  std::unique_lock<std::mutex> lock(m);
  Time("std wait_until", [&](const timespec&) {
    cv.wait_until(lock, std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  });
  Time("std wait_for", [&](const timespec&) { cv.wait_for(lock, std::chrono::milliseconds(50)); });
  std::timed_mutex timed;
  timed.lock();
  Time("std timed_mutex",
       [&](const timespec&) { (void)timed.try_lock_for(std::chrono::milliseconds(50)); });
}
