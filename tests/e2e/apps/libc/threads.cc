// Threads in every way of beginning and ending. Prints nothing that depends on timing.
#include <pthread.h>
#include <threads.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

struct Cleaned {
  std::atomic<int>* count;
  ~Cleaned() { ++*count; }
};

std::atomic<int> g_cleaned{0};

void* Returns(void*) {
  Cleaned cleaned{&g_cleaned};
  time(nullptr);
  return reinterpret_cast<void*>(7);
}

void* Exits(void*) {
  Cleaned cleaned{&g_cleaned};
  pthread_exit(reinterpret_cast<void*>(8));
}

void* IsCancelled(void*) {
  Cleaned cleaned{&g_cleaned};
  for (;;) pause();
}

// Cancelled while it waits in a function that is hooked.
void* IsCancelledInAHook(void*) {
  Cleaned cleaned{&g_cleaned};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  timespec never{4000000000, 0};
  for (;;) pthread_cond_timedwait(&condition, &mutex, &never);
}

void* Nests(void*) {
  std::thread inner([] {
    std::thread innermost([] { time(nullptr); });
    innermost.join();
  });
  inner.join();
  std::thread second([] { time(nullptr); });
  second.join();
  return nullptr;
}

int C11(void*) {
  time(nullptr);
  return 9;
}

// A destructor of thread-specific data still makes calls.
pthread_key_t g_key;
void* LeavesData(void*) {
  pthread_setspecific(g_key, &g_key);
  return nullptr;
}

void Run(const char* what, void* (*routine)(void*), bool cancel) {
  pthread_t thread;
  pthread_create(&thread, nullptr, routine, nullptr);
  if (cancel) {
    usleep(20000);
    pthread_cancel(thread);
  }
  void* result = nullptr;
  pthread_join(thread, &result);
  printf("%s: %s\n", what,
         result == PTHREAD_CANCELED ? "cancelled"
         : result == nullptr        ? "null"
                                    : "value");
}

}  // namespace

int main() {
  Run("returns", &Returns, false);
  Run("exits", &Exits, false);
  Run("cancelled", &IsCancelled, true);
  Run("cancelled in a hook", &IsCancelledInAHook, true);
  Run("nests", &Nests, false);
  thrd_t c11;
  int code = 0;
  thrd_create(&c11, &C11, nullptr);
  thrd_join(c11, &code);
  printf("c11: %d\n", code);
  pthread_key_create(&g_key, [](void*) { time(nullptr); });
  Run("leaves data", &LeavesData, false);
  int caught = 0;
  std::thread throws([&] {
    for (int i = 0; i < 100; ++i) {
      try {
        time(nullptr);
        throw std::runtime_error("x");
      } catch (const std::exception&) {
        ++caught;
      }
    }
  });
  throws.join();
  std::vector<std::thread> many;
  for (int i = 0; i < 20; ++i) many.emplace_back([] { time(nullptr); });
  for (auto& t : many) t.join();
  printf("cleaned %d caught %d\n", g_cleaned.load(), caught);
}
