// Waits a little in every way that ends at a time by some clock, or that is computed from one, and
// prints how long that took by the program's clocks, to the nanosecond. Whether it really took
// about that long, by a clock that nothing between the program and the kernel can change, is the
// word in front of it.
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <functional>
#include <future>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

#include <linux/futex.h>

namespace {

using Steady = std::chrono::steady_clock;
using Wall = std::chrono::system_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kWait(40);

// The kernel's own monotonic clock, past every library.
int64_t TrueNs() {
  timespec t;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(SYS_clock_gettime), "D"(CLOCK_MONOTONIC), "S"(&t)
               : "rcx", "r11", "memory");
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

timespec In(milliseconds wait, clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  const int64_t ns = t.tv_nsec + nanoseconds(wait).count();
  return {t.tv_sec + ns / 1000000000, ns % 1000000000};
}

void Try(const char* what, const std::function<void()>& wait, milliseconds expected = kWait) {
  const int64_t really = TrueNs();
  const auto begin = Steady::now();
  wait();
  const auto took = Steady::now() - begin;
  const int64_t true_ms = (TrueNs() - really) / 1000000;
  const char* verdict = true_ms < expected.count() / 2 ? "too early"
                        : true_ms > 15000              ? "too late"
                                                       : "waited";
  std::printf("%-28s %s %lld\n", what, verdict,
              static_cast<long long>(std::chrono::duration_cast<nanoseconds>(took).count()));
}

// A loop that looks at the clock between its waits. Where the recorded run was late it asked for
// less, and so does its replay, where nothing makes it late: the loop takes as long as the waits
// that it asks for, and by the program's clock never less than `least`.
void TryLoop(const char* what, const std::function<nanoseconds()>& loop,
             milliseconds least = kWait) {
  const int64_t really = TrueNs();
  const auto begin = Steady::now();
  const nanoseconds asked = loop();
  const nanoseconds took = Steady::now() - begin;
  const nanoseconds true_ns(TrueNs() - really);
  const bool is_early = took < least || true_ns < asked;
  const char* verdict = is_early                             ? "too early"
                        : true_ns > std::chrono::seconds(15) ? "too late"
                                                             : "waited";
  std::printf("%-28s %s %lld\n", what, verdict, static_cast<long long>(took.count()));
}

void StandardLibrary() {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock<std::mutex> lock(mutex);
  Try("wait_for", [&] { changed.wait_for(lock, kWait, [] { return false; }); });
  Try("wait_until steady",
      [&] { changed.wait_until(lock, Steady::now() + kWait, [] { return false; }); });
  Try("wait_until system",
      [&] { changed.wait_until(lock, Wall::now() + kWait, [] { return false; }); });
  Try("sleep_until steady", [] { std::this_thread::sleep_until(Steady::now() + kWait); });
  Try("sleep_until system", [] { std::this_thread::sleep_until(Wall::now() + kWait); });
  Try("sleep_for", [] { std::this_thread::sleep_for(kWait); });
  std::timed_mutex timed;
  std::shared_timed_mutex shared;
  timed.lock();
  shared.lock();
  std::thread([&] {
    Try("try_lock_for", [&] { (void)timed.try_lock_for(kWait); });
    Try("try_lock_until system", [&] { (void)timed.try_lock_until(Wall::now() + kWait); });
    Try("try_lock_shared_for", [&] { (void)shared.try_lock_shared_for(kWait); });
  }).join();
  std::promise<int> promise;
  std::future<int> future = promise.get_future();
  Try("future wait_for", [&] { future.wait_for(kWait); });
  Try("future wait_until system", [&] { future.wait_until(Wall::now() + kWait); });
  // The other thread comes before the time is over.
  bool ready = false;
  std::thread other([&] {
    std::this_thread::sleep_for(kWait);
    std::lock_guard<std::mutex> hold(mutex);
    ready = true;
    changed.notify_all();
  });
  Try("notified", [&] { changed.wait_for(lock, std::chrono::minutes(5), [&] { return ready; }); });
  other.join();
  // One thread computes the deadline, another one waits for it.
  const auto deadline = Steady::now() + 2 * kWait;
  std::thread([&] {
    std::unique_lock<std::mutex> own(mutex, std::defer_lock);
    lock.unlock();
    own.lock();
    while (changed.wait_until(own, deadline) != std::cv_status::timeout) {
    }
  }).join();
}

void Posix() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  for (clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
    std::printf("clock %d\n", clock);
    Try("cond_clockwait", [&] {
      const timespec t = In(kWait, clock);
      while (pthread_cond_clockwait(&condition, &mutex, clock, &t) == 0) {
      }
    });
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    Try("sem_clockwait", [&] {
      const timespec t = In(kWait, clock);
      sem_clockwait(&semaphore, clock, &t);
    });
    Try("clock_nanosleep", [&] {
      const timespec t = In(kWait, clock);
      clock_nanosleep(clock, TIMER_ABSTIME, &t, nullptr);
    });
    Try("futex", [&] {
      const timespec t = In(kWait, clock);
      int word = 0;
      syscall(SYS_futex, &word,
              FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG |
                  (clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0),
              0, &t, nullptr, FUTEX_BITSET_MATCH_ANY);
    });
    Try("timerfd", [&] {
      const int fd = timerfd_create(clock, TFD_CLOEXEC);
      const itimerspec setting{{}, In(kWait, clock)};
      uint64_t fired = 0;
      if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &setting, nullptr) != 0 ||
          read(fd, &fired, sizeof fired) != sizeof fired)
        std::printf("no timerfd\n");
      close(fd);
    });
    Try("timer", [&] {
      sigset_t usr1;
      sigemptyset(&usr1);
      sigaddset(&usr1, SIGUSR1);
      pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
      sigevent event{};
      event.sigev_notify = SIGEV_SIGNAL;
      event.sigev_signo = SIGUSR1;
      timer_t timer;
      if (timer_create(clock, &event, &timer) != 0) return;
      const itimerspec setting{{}, In(kWait, clock)};
      timer_settime(timer, TIMER_ABSTIME, &setting, nullptr);
      const timespec limit{10, 0};
      sigtimedwait(&usr1, nullptr, &limit);
      timer_delete(timer);
    });
  }
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_t monotonic;
  pthread_cond_init(&monotonic, &attributes);
  Try("cond_timedwait monotonic", [&] {
    const timespec t = In(kWait, CLOCK_MONOTONIC);
    while (pthread_cond_timedwait(&monotonic, &mutex, &t) == 0) {
    }
  });
}

void Loops() {
  TryLoop("poll until a deadline", [] {
    const auto deadline = Steady::now() + kWait;
    nanoseconds asked(0);
    int rounds = 0;
    for (auto now = Steady::now(); now < deadline; now = Steady::now(), ++rounds) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - now);
      asked += left;
      poll(nullptr, 0, static_cast<int>(left.count()));
    }
    std::printf("rounds %d\n", rounds);
    return asked;
  });
  Try(
      "spin until a deadline",
      [] {
        const auto deadline = Steady::now() + milliseconds(5);
        long rounds = 0;
        while (Steady::now() < deadline) ++rounds;
        std::printf("spins %ld\n", rounds);
      },
      milliseconds(0));
  TryLoop("rate limiter", [] {
    nanoseconds asked(0);
    auto next = Steady::now();
    for (int i = 0; i < 10; ++i) {
      next += kWait / 10;
      const nanoseconds left = next - Steady::now();
      if (left <= nanoseconds(0)) continue;
      asked += left;
      std::this_thread::sleep_for(left);  // as sleep_until does
    }
    return asked;
  });
  // A watcher that looks at the clock as often as it comes to it; how often is not printed.
  std::atomic<bool> stop{false};
  std::thread watcher([&] {
    auto last = Steady::now();
    while (!stop) {
      const auto now = Steady::now();
      if (now < last) std::printf("time went back\n");
      last = now;
    }
  });
  Try("beside a watcher", [] { std::this_thread::sleep_for(kWait); });
  stop = true;
  watcher.join();
}

void Seeds() {
  std::mt19937_64 from_steady(Steady::now().time_since_epoch().count());
  std::mt19937_64 from_high(std::chrono::high_resolution_clock::now().time_since_epoch().count());
  std::printf("seeds %llx %llx\n", static_cast<unsigned long long>(from_steady()),
              static_cast<unsigned long long>(from_high()));
  for (clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
                          CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
                          CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI}) {
    timespec t;
    clock_gettime(clock, &t);
    std::printf("clock %d %lld.%09ld\n", clock, static_cast<long long>(t.tv_sec), t.tv_nsec);
  }
  timespec t;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  std::printf("by system call %lld.%09ld\n", static_cast<long long>(t.tv_sec), t.tv_nsec);
  tms used;
  const clock_t ticks = times(&used);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("used %ld %ld %ld %ld.%06ld %ld\n", static_cast<long>(clock()),
              static_cast<long>(ticks), static_cast<long>(used.tms_utime),
              static_cast<long>(usage.ru_utime.tv_sec), static_cast<long>(usage.ru_utime.tv_usec),
              usage.ru_maxrss);
}

// Not in a replay, which keeps to its own folder.
void Queue() {
  mq_attr queue_attributes{};
  queue_attributes.mq_maxmsg = 1;
  queue_attributes.mq_msgsize = 8;
  const mqd_t queue =
      mq_open("/deja-waits-test", O_CREAT | O_RDWR | O_CLOEXEC, 0600, &queue_attributes);
  if (queue == static_cast<mqd_t>(-1)) return;
  mq_unlink("/deja-waits-test");
  Try("mq_timedreceive", [&] {
    char message[8];
    const timespec t = In(kWait, CLOCK_REALTIME);
    mq_timedreceive(queue, message, sizeof message, nullptr, &t);
  });
  mq_close(queue);
}

}  // namespace

int main(int argc, char**) {
  StandardLibrary();
  Posix();
  Loops();
  Seeds();
  if (argc > 1) Queue();
  return 0;
}
