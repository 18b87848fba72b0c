// Locks and timed waits by every name that the C library has for them; each succeeds at once or
// times out at once.
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <threads.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "tests/e2e/apps/libc/every_call.h"

namespace {

timespec In(clockid_t clock, long milliseconds) {
  timespec at{};
  clock_gettime(clock, &at);
  at.tv_nsec += milliseconds * 1000000;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  return at;
}

void Mutexes() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  timespec soon = In(CLOCK_MONOTONIC, 20);
  Show("pthread_mutex_clocklock", pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon));
  Show("pthread_mutex_clocklock",
       pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
  Show("pthread_mutex_trylock", pthread_mutex_trylock(&mutex) == EBUSY);
  pthread_mutex_unlock(&mutex);
  using Lock = int(pthread_mutex_t*);
  for (const char* name : {"__pthread_mutex_lock", "__pthread_mutex_trylock"}) {
    if (!Has(name)) continue;
    if (Old<Lock>(name)(&mutex) != 0) std::exit(3);
    pthread_mutex_unlock(&mutex);
  }
  mtx_t c11;
  mtx_init(&c11, mtx_timed);
  timespec never = In(CLOCK_REALTIME, 20);
  Show("mtx_timedlock", mtx_timedlock(&c11, &never));
  Show("mtx_timedlock", mtx_timedlock(&c11, &never) == thrd_timedout);
  mtx_unlock(&c11);
  mtx_destroy(&c11);
}

void ReadersAndWriters() {
  pthread_rwlock_t lock;
  Show("pthread_rwlock_init", pthread_rwlock_init(&lock, nullptr));
  Show("pthread_rwlock_rdlock", pthread_rwlock_rdlock(&lock));
  Show("pthread_rwlock_tryrdlock", pthread_rwlock_tryrdlock(&lock));
  Show("pthread_rwlock_trywrlock", pthread_rwlock_trywrlock(&lock) == EBUSY);
  timespec soon = In(CLOCK_REALTIME, 20);
  Show("pthread_rwlock_timedrdlock", pthread_rwlock_timedrdlock(&lock, &soon));
  Show("pthread_rwlock_timedwrlock", pthread_rwlock_timedwrlock(&lock, &soon) == ETIMEDOUT);
  soon = In(CLOCK_MONOTONIC, 20);
  Show("pthread_rwlock_clockrdlock", pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &soon));
  Show("pthread_rwlock_clockwrlock",
       pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
  for (int i = 0; i < 4; ++i) pthread_rwlock_unlock(&lock);
  Show("pthread_rwlock_wrlock", pthread_rwlock_wrlock(&lock));
  pthread_rwlock_unlock(&lock);
}

void* Return(void* value) {
  return value;
}

void Joins() {
  pthread_t thread{};
  void* result = nullptr;
  int value = 5;
  pthread_create(&thread, nullptr, Return, &value);
  timespec later = In(CLOCK_REALTIME, 60000);
  Show("pthread_timedjoin_np",
       pthread_timedjoin_np(thread, &result, &later) == 0 && result == &value);
  pthread_create(&thread, nullptr, Return, &value);
  later = In(CLOCK_MONOTONIC, 60000);
  Show("pthread_clockjoin_np",
       pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &later) == 0 && result == &value);
}

int g_once = 0;

void Once() {
  pthread_once_t once = PTHREAD_ONCE_INIT;
  using Run = int(pthread_once_t*, void (*)());
  Run* run = Has("__pthread_once") ? Old<Run>("__pthread_once") : pthread_once;
  for (int i = 0; i < 2; ++i) run(&once, [] { ++g_once; });
  Show("__pthread_once", g_once);
}

// One thread waits, the other says that it may go on.
struct Gate {
  mtx_t mutex;
  cnd_t condition;
  bool open = false;
};

void Conditions() {
  Gate gate;
  mtx_init(&gate.mutex, mtx_plain);
  cnd_init(&gate.condition);
  thrd_t opener{};
  thrd_create(
      &opener,
      [](void* opaque) {
        auto* g = static_cast<Gate*>(opaque);
        mtx_lock(&g->mutex);
        g->open = true;
        cnd_signal(&g->condition);
        mtx_unlock(&g->mutex);
        return 0;
      },
      &gate);
  mtx_lock(&gate.mutex);
  while (!gate.open) cnd_wait(&gate.condition, &gate.mutex);
  mtx_unlock(&gate.mutex);
  thrd_join(opener, nullptr);
  Show("cnd_wait", gate.open);
  cnd_destroy(&gate.condition);
  mtx_destroy(&gate.mutex);
}

void Queues() {
  const std::string name = "/deja-test-" + std::to_string(getpid());
  mq_attr attributes{};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = 8;
  const mqd_t queue = mq_open(name.c_str(), O_CREAT | O_RDWR, 0600, &attributes);
  if (queue < 0) return Show("mq_timedsend", "no queues here");
  timespec soon = In(CLOCK_REALTIME, 20);
  Show("mq_timedsend", mq_timedsend(queue, "x", 1, 0, &soon));
  Show("mq_timedsend", mq_timedsend(queue, "x", 1, 0, &soon) < 0 && errno == ETIMEDOUT);
  mq_close(queue);
  mq_unlink(name.c_str());
}

}  // namespace

int main() {
  Mutexes();
  ReadersAndWriters();
  Joins();
  Once();
  Conditions();
  Queues();
  return 0;
}
