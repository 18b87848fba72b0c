// Robust mutexes that processes share, and owners that end with them: by themselves or by SIGKILL,
// with and without a condition variable. What comes out depends on who comes first.
// Usage: robust owners|condition|lost
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr int kChildren = 4;
constexpr int kTimes = 12;

struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t value;
  uint64_t dead;  // how often an owner was found dead
  int available;
  std::atomic<bool> is_held;  // by one that waits to be killed
};

Shared* g_shared;

// As many random bytes as `count`: another order asks for another number of them.
unsigned Draw(uint64_t count) {
  unsigned char bytes[16] = {};
  const ssize_t n = getrandom(bytes, 1 + count % sizeof bytes, 0);
  unsigned sum = 0;
  for (ssize_t i = 0; i < n; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

void Dawdle() {
  usleep(Draw(3) % 2000);
}

void MakeShared() {
  g_shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_mutexattr_t of_mutex;
  pthread_condattr_t of_condition;
  pthread_mutexattr_init(&of_mutex);
  pthread_condattr_init(&of_condition);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&of_mutex, PTHREAD_MUTEX_ROBUST);
  pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&g_shared->mutex, &of_mutex);
  pthread_cond_init(&g_shared->changed, &of_condition);
  g_shared->value = 1;
}

pid_t Start(const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    work();
    _exit(0);
  }
  return pid;
}

// The mutex is the caller's now, as `error` says. Others find what its owner had left.
void Enter(int error, uint64_t what) {
  if (error != 0 && error != EOWNERDEAD) std::abort();
  if (error == EOWNERDEAD) {
    if (pthread_mutex_consistent(&g_shared->mutex) != 0) std::abort();
    ++g_shared->dead;
  }
  g_shared->value = (g_shared->value * 31 + what + (error == EOWNERDEAD ? 100 : 0)) % 1000003;
}

void Take(uint64_t who, bool tries) {
  uint64_t busy = 0;
  int error = 0;
  while (tries && (error = pthread_mutex_trylock(&g_shared->mutex)) == EBUSY) {
    ++busy;
    Dawdle();
  }
  if (!tries) error = pthread_mutex_lock(&g_shared->mutex);
  Enter(error, who + 7 * busy);
}

void Work(int who) {
  for (int i = 0; i < kTimes; ++i) {
    Dawdle();
    Take(static_cast<uint64_t>(who), i % 3 == 0);
    if (who == 1 && i == 5) _exit(0);
    if (who == 2 && i == 7) raise(SIGKILL);
    if (who == 3 && i == 8) {
      g_shared->is_held.store(true);
      for (;;) pause();
    }
    if (g_shared->value % 3 == 0) Dawdle();
    pthread_mutex_unlock(&g_shared->mutex);
  }
}

int Print(const char* what) {
  printf("%s: value %llu, %llu dead, %u\n", what, static_cast<unsigned long long>(g_shared->value),
         static_cast<unsigned long long>(g_shared->dead), Draw(g_shared->value));
  return 0;
}

int Owners() {
  std::vector<pid_t> children;
  for (int who = 0; who < kChildren; ++who) children.push_back(Start([who] { Work(who); }));
  while (!g_shared->is_held.load()) usleep(1000);
  kill(children[3], SIGKILL);
  for (const pid_t pid : children) waitpid(pid, nullptr, 0);
  const int error = pthread_mutex_lock(&g_shared->mutex);
  Enter(error, 9);
  pthread_mutex_unlock(&g_shared->mutex);
  return Print("owners");
}

// Several wait; those who wake them end with the mutex.
int Condition() {
  std::vector<pid_t> children;
  for (int who = 0; who < kChildren; ++who)
    children.push_back(Start([who] {
      const auto me = static_cast<uint64_t>(who);
      Take(me, false);
      for (int got = 0; got < 3;) {
        while (g_shared->available == 0) {
          const int error = pthread_cond_wait(&g_shared->changed, &g_shared->mutex);
          if (error != 0) Enter(error, me);
        }
        --g_shared->available;
        Enter(0, me + 20 * static_cast<uint64_t>(++got));
      }
      pthread_mutex_unlock(&g_shared->mutex);
    }));
  for (int i = 0; i < 3 * kChildren; ++i) {
    Dawdle();
    const pid_t pid = Start([i] {
      Take(8, false);
      ++g_shared->available;
      pthread_cond_broadcast(&g_shared->changed);
      if (i % 2 == 0) _exit(0);
      pthread_mutex_unlock(&g_shared->mutex);
    });
    waitpid(pid, nullptr, 0);
  }
  for (const pid_t pid : children) waitpid(pid, nullptr, 0);
  return Print("condition");
}

// It is given back as it was left: no process can have it any more.
int Lost() {
  waitpid(Start([] { pthread_mutex_lock(&g_shared->mutex); }), nullptr, 0);
  const int first = pthread_mutex_lock(&g_shared->mutex);
  pthread_mutex_unlock(&g_shared->mutex);
  const int second = pthread_mutex_lock(&g_shared->mutex);
  const int third = pthread_mutex_trylock(&g_shared->mutex);
  printf("%d %d %d\n", first == EOWNERDEAD, second == ENOTRECOVERABLE, third == ENOTRECOVERABLE);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOFBF, 1 << 16);
  MakeShared();
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "owners") return Owners();
  if (what == "condition") return Condition();
  if (what == "lost") return Lost();
  fprintf(stderr, "usage: robust owners|condition|lost\n");
  return 2;
}
