// C11's threads, mutexes, condition variables and call_once.
#include <threads.h>
#include <time.h>

#include "tests/e2e/apps/threads/behaviours.h"

namespace threads {
namespace {

struct Shared {
  mtx_t mutex;
  cnd_t changed;
  int next = 0;
  Log log;
};
Shared g_shared;
int g_maker = -1;
once_flag g_once = ONCE_FLAG_INIT;

int Thread(void* argument) {
  const int me = *static_cast<int*>(argument);
  thread_local static int t_me;
  t_me = me;
  call_once(&g_once, [] { g_maker = t_me; });
  for (int i = 0; i < 60; ++i) {
    if (i % 4 == 3) {
      int misses = 0;
      while (mtx_trylock(&g_shared.mutex) != thrd_success) {
        ++misses;
        thrd_yield();
      }
      g_shared.log.Add(me, misses);
    } else {
      mtx_lock(&g_shared.mutex);
    }
    timespec deadline;
    timespec_get(&deadline, TIME_UTC);
    deadline.tv_nsec += 100000;
    if (deadline.tv_nsec >= 1000000000) {
      deadline.tv_nsec -= 1000000000;
      ++deadline.tv_sec;
    }
    int rc = thrd_success;
    while (g_shared.next % 4 != me && rc == thrd_success)
      rc = cnd_timedwait(&g_shared.changed, &g_shared.mutex, &deadline);
    g_shared.log.Add(me, rc == thrd_success ? ++g_shared.next : -g_shared.next);
    if (rc != thrd_success) ++g_shared.next;
    cnd_broadcast(&g_shared.changed);
    mtx_unlock(&g_shared.mutex);
  }
  return 0;
}

void C11Threads() {
  mtx_init(&g_shared.mutex, mtx_timed);
  cnd_init(&g_shared.changed);
  int names[4] = {0, 1, 2, 3};
  thrd_t all[4];
  for (int i = 0; i < 4; ++i) thrd_create(&all[i], Thread, &names[i]);
  for (thrd_t& thread : all) thrd_join(thread, nullptr);
  std::printf("made by %d\n", g_maker);
  g_shared.log.Print("c11");
}

}  // namespace

std::vector<Behaviour> C11Behaviours() {
  return {{"c11_threads", C11Threads}};
}

}  // namespace threads
