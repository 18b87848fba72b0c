// Processes that meet by what C has for it: what comes out depends on who comes first.
// Usage: meet WHAT, see the end of this file.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr int kChildren = 4;
constexpr int kTimes = 12;

// One message is written, and read, in one piece.
struct Message {
  int32_t who;
  int32_t number;
};

// As many random bytes as `count`: another order asks for another number of them.
unsigned Draw(int count) {
  unsigned char bytes[16] = {};
  const ssize_t n = getrandom(bytes, 1 + static_cast<size_t>(count) % sizeof bytes, 0);
  unsigned sum = 0;
  for (ssize_t i = 0; i < n; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

void Dawdle() {
  usleep(Draw(3) % 2000);
}

std::vector<pid_t> Start(const std::function<void(int)>& work, int count = kChildren) {
  std::vector<pid_t> children;
  for (int who = 0; who < count; ++who) {
    const pid_t pid = fork();
    if (pid == 0) {
      work(who);
      _exit(0);
    }
    children.push_back(pid);
  }
  return children;
}

void Join(const std::vector<pid_t>& children) {
  for (const pid_t pid : children) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) std::abort();
  }
}

// A lock around a value in memory that processes share.
struct Shared {
  char before[24];  // not at the beginning of a page
  sem_t lock;
  sem_t last;
  uint64_t value;
};

void Change(Shared& shared, int who) {
  for (int i = 0; i < kTimes; ++i) {
    Dawdle();
    while (sem_wait(&shared.lock) != 0) {
    }
    shared.value = (shared.value * 31 + static_cast<uint64_t>(who)) % 1000003;
    if (shared.value % 3 == 0) Dawdle();
    sem_post(&shared.lock);
  }
}

void Begin(Shared& shared) {
  sem_init(&shared.lock, 1, 1);
  sem_init(&shared.last, 1, 0);
  shared.value = 1;
}

int Semaphore() {
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Begin(*shared);
  const auto children = Start([&](int who) {
    Change(*shared, who);
    sem_post(&shared->last);
  });
  for (int i = 0; i < kChildren; ++i) {
    while (sem_wait(&shared->last) != 0) {
    }
  }
  printf("value %llu, %u\n", static_cast<unsigned long long>(shared->value),
         Draw(static_cast<int>(shared->value)));
  Join(children);
  return 0;
}

// The same by a mutex, and by a condition variable for which several processes wait.
struct SharedMutex {
  char before[24];
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t value;
  int64_t available;
  bool closed;
};

SharedMutex* MakeSharedMutex() {
  auto* shared = static_cast<SharedMutex*>(mmap(
      nullptr, sizeof(SharedMutex), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_mutexattr_t of_mutex;
  pthread_condattr_t of_condition;
  pthread_mutexattr_init(&of_mutex);
  pthread_condattr_init(&of_condition);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &of_mutex);
  pthread_cond_init(&shared->changed, &of_condition);
  pthread_mutexattr_destroy(&of_mutex);
  pthread_condattr_destroy(&of_condition);
  shared->value = 1;
  return shared;
}

void Mix(SharedMutex& shared, uint64_t what) {
  shared.value = (shared.value * 31 + what) % 1000003;
}

int PrintMixed(const char* what, const SharedMutex& shared) {
  printf("%s %llu, %u\n", what, static_cast<unsigned long long>(shared.value),
         Draw(static_cast<int>(shared.value)));
  return 0;
}

int Mutex() {
  SharedMutex* shared = MakeSharedMutex();
  Join(Start([&](int who) {
    for (int i = 0; i < kTimes; ++i) {
      Dawdle();
      uint64_t busy = 0;
      if (i % 3 == 0) {
        while (pthread_mutex_trylock(&shared->mutex) != 0) {
          ++busy;
          Dawdle();
        }
      } else {
        pthread_mutex_lock(&shared->mutex);
      }
      Mix(*shared, static_cast<uint64_t>(who) + 7 * busy);
      if (shared->value % 3 == 0) Dawdle();
      pthread_mutex_unlock(&shared->mutex);
    }
  }));
  return PrintMixed("mutex", *shared);
}

// Takes what is available, until there is no more to come.
void Consume(SharedMutex& shared, int who) {
  for (uint64_t late = 0;;) {
    pthread_mutex_lock(&shared.mutex);
    while (shared.available == 0 && !shared.closed) {
      timespec until{};
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_nsec += 700000;
      until.tv_sec += until.tv_nsec / 1000000000;
      until.tv_nsec %= 1000000000;
      if (who % 2 == 0)
        pthread_cond_wait(&shared.changed, &shared.mutex);
      else if (pthread_cond_timedwait(&shared.changed, &shared.mutex, &until) != 0)
        ++late;
    }
    const bool is_last = shared.available == 0;
    if (!is_last) --shared.available;
    Mix(shared, static_cast<uint64_t>(who) + 7 * late);
    pthread_mutex_unlock(&shared.mutex);
    if (is_last) return;
    if (who == 1) Dawdle();
  }
}

int Condition() {
  SharedMutex* shared = MakeSharedMutex();
  const auto children = Start([&](int who) { Consume(*shared, who); });
  for (int i = 0; i < kChildren * kTimes; ++i) {
    pthread_mutex_lock(&shared->mutex);
    ++shared->available;
    pthread_cond_signal(&shared->changed);
    pthread_mutex_unlock(&shared->mutex);
    if (i % 3 == 0) Dawdle();
  }
  pthread_mutex_lock(&shared->mutex);
  shared->closed = true;
  pthread_cond_broadcast(&shared->changed);
  pthread_mutex_unlock(&shared->mutex);
  Join(children);
  return PrintMixed("condition", *shared);
}

// A reader-writer lock, with attempts that fail and waits whose time is over, and a barrier that
// tells one process that it counts.
struct SharedRwlock {
  pthread_rwlock_t lock;
  pthread_barrier_t barrier;
  uint64_t value;
  uint64_t seen[kChildren];
};

void ReadAndWrite(SharedRwlock& shared, int who) {
  uint64_t& seen = shared.seen[who];
  for (int i = 0; i < kTimes; ++i) {
    Dawdle();
    timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = (soon.tv_nsec + 500'000) % 1'000'000'000;
    const bool has_read = (i % 3 == 0   ? pthread_rwlock_tryrdlock(&shared.lock)
                           : i % 3 == 1 ? pthread_rwlock_timedrdlock(&shared.lock, &soon)
                                        : pthread_rwlock_rdlock(&shared.lock)) == 0;
    if (has_read) {
      seen = seen * 31 + shared.value;
      pthread_rwlock_unlock(&shared.lock);
    }
    const bool writes = (i % 2 == 0 ? pthread_rwlock_wrlock(&shared.lock)
                                    : pthread_rwlock_trywrlock(&shared.lock)) == 0;
    if (writes) {
      shared.value = (shared.value * 31 + static_cast<uint64_t>(who)) % 1000003;
      if (shared.value % 3 == 0) Dawdle();
      pthread_rwlock_unlock(&shared.lock);
    }
    seen = seen * 31 + (has_read ? 1 : 0) + (writes ? 2 : 0);
    if (i % 4 == 0 && pthread_barrier_wait(&shared.barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
      seen = seen * 31 + 7;
  }
}

int Rwlock() {
  auto* shared = static_cast<SharedRwlock*>(mmap(
      nullptr, sizeof(SharedRwlock), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_rwlockattr_t of_lock;
  pthread_barrierattr_t of_barrier;
  pthread_rwlockattr_init(&of_lock);
  pthread_barrierattr_init(&of_barrier);
  pthread_rwlockattr_setpshared(&of_lock, PTHREAD_PROCESS_SHARED);
  pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_init(&shared->lock, &of_lock);
  pthread_barrier_init(&shared->barrier, &of_barrier, kChildren);
  shared->value = 1;
  Join(Start([&](int who) { ReadAndWrite(*shared, who); }));
  printf("value %llu", static_cast<unsigned long long>(shared->value));
  for (const uint64_t seen : shared->seen) printf(" %llu", static_cast<unsigned long long>(seen));
  printf(" %u\n", Draw(static_cast<int>(shared->value)));
  return 0;
}

Shared* MapByName(const char* name, size_t room_before) {
  mmap(nullptr, room_before, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) std::abort();
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return static_cast<Shared*>(memory);
}

// Each process has it at another address.
int SharedMemory() {
  const std::string name = "/deja-meet-" + std::to_string(getpid());
  Shared* shared = MapByName(name.c_str(), 1 << 20);
  Begin(*shared);
  Join(Start(
      [&](int who) { Change(*MapByName(name.c_str(), static_cast<size_t>(who + 1) << 21), who); }));
  printf("value %llu, %u\n", static_cast<unsigned long long>(shared->value),
         Draw(static_cast<int>(shared->value)));
  shm_unlink(name.c_str());
  return 0;
}

// What has been counted when one looks.
int Counter() {
  const int fd = eventfd(0, 0);
  const auto children = Start([&](int who) {
    for (int i = 0; i < kTimes; ++i) {
      Dawdle();
      const uint64_t more = static_cast<uint64_t>(who) + 1;
      if (write(fd, &more, sizeof more) != sizeof more) std::abort();
    }
  });
  constexpr uint64_t kAll = kTimes * kChildren * (kChildren + 1) / 2;
  for (uint64_t sum = 0; sum < kAll;) {
    uint64_t value = 0;
    if (eventfd_read(fd, &value) != 0) std::abort();
    sum += value;
    printf("%llu %u\n", static_cast<unsigned long long>(value), Draw(static_cast<int>(value)));
    Dawdle();
  }
  Join(children);
  return 0;
}

void PrintAll(int fd, int count) {
  for (int i = 0; i < count; ++i) {
    Message message{};
    if (read(fd, &message, sizeof message) != sizeof message) std::abort();
    printf("%d %d %u\n", message.who, message.number, Draw(message.who));
  }
}

void SendAll(int fd, int who) {
  for (int i = 0; i < kTimes; ++i) {
    Dawdle();
    const Message message{who, i};
    if (write(fd, &message, sizeof message) != sizeof message) std::abort();
  }
}

// One pipe, several writers, nothing that orders them.
int Writers() {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const auto children = Start([&](int who) { SendAll(ends[1], who); });
  PrintAll(ends[0], kChildren * kTimes);
  Join(children);
  return 0;
}

int Fifo() {
  const std::string path = "meet-" + std::to_string(getpid()) + ".fifo";
  if (mkfifo(path.c_str(), 0600) != 0) std::abort();
  const auto children = Start([&](int who) {
    const int fd = open(path.c_str(), O_WRONLY);
    SendAll(fd, who);
    close(fd);
  });
  const int fd = open(path.c_str(), O_RDONLY);
  // The first child may have ended before the next one opens it.
  const int kept_open = open(path.c_str(), O_WRONLY);
  PrintAll(fd, kChildren * kTimes);
  close(kept_open);
  close(fd);
  Join(children);
  unlink(path.c_str());
  return 0;
}

// One pipe, several readers; each says by a pipe of its own what it got.
int Readers() {
  int jobs[2];
  int done[kChildren][2];
  if (pipe(jobs) != 0) std::abort();
  for (auto& ends : done)
    if (pipe(ends) != 0) std::abort();
  const auto children = Start([&](int who) {
    close(jobs[1]);
    Message message{};
    while (read(jobs[0], &message, sizeof message) == sizeof message) {
      message.who = static_cast<int32_t>(Draw(message.number));
      if (write(done[who][1], &message, sizeof message) != sizeof message) std::abort();
      Dawdle();
    }
  });
  close(jobs[0]);
  for (int i = 0; i < kChildren * kTimes; ++i) {
    const Message message{0, i};
    if (write(jobs[1], &message, sizeof message) != sizeof message) std::abort();
  }
  close(jobs[1]);
  Join(children);
  for (int who = 0; who < kChildren; ++who) {
    close(done[who][1]);
    Message message{};
    while (read(done[who][0], &message, sizeof message) == sizeof message)
      printf("%d: %d %d\n", who, message.number, message.who);
  }
  return 0;
}

std::vector<int> Ends(bool waits, std::vector<pid_t>& children) {
  std::vector<int> near;
  for (int who = 0; who < kChildren; ++who) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    near.push_back(ends[0]);
    const auto one = Start(
        [&](int) {
          close(ends[0]);
          SendAll(ends[1], who);
        },
        1);
    children.push_back(one[0]);
    close(ends[1]);
    if (!waits) fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  return near;
}

int Select() {
  std::vector<pid_t> children;
  const std::vector<int> near = Ends(true, children);
  std::vector<int> left(near.size(), kTimes);
  for (int all = kChildren * kTimes; all > 0;) {
    fd_set in;
    FD_ZERO(&in);
    for (size_t who = 0; who < near.size(); ++who)
      if (left[who] > 0) FD_SET(near[who], &in);
    timeval soon{0, 1000};
    const timespec late{5, 0};
    const int count = near.back() + 1;
    const int found = all % 2 == 0 ? select(count, &in, nullptr, nullptr, &soon)
                                   : pselect(count, &in, nullptr, nullptr, &late, nullptr);
    printf("%d of %d\n", found, all);
    for (size_t who = 0; found > 0 && who < near.size(); ++who) {
      if (!FD_ISSET(near[who], &in)) continue;
      PrintAll(near[who], 1);
      --left[who];
      --all;
    }
  }
  Join(children);
  return 0;
}

int Epoll(bool by_edge) {
  std::vector<pid_t> children;
  const std::vector<int> near = Ends(!by_edge, children);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  for (size_t who = 0; who < near.size(); ++who) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | (by_edge ? EPOLLET : 0u);
    event.data.u64 = 1000 + who;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, near[who], &event) != 0) std::abort();
  }
  for (int left = kChildren * kTimes, gone = 0; left > 0 || gone < kChildren;) {
    epoll_event events[3];
    const int found = epoll_wait(epoll, events, 3, left % 4 == 0 ? 1 : 1000);
    for (int i = 0; i < found; ++i) {
      const size_t who = events[i].data.u64 - 1000;
      if ((events[i].events & EPOLLIN) == 0) continue;
      Message message{};
      ssize_t n = 0;
      while ((n = read(near[who], &message, sizeof message)) == sizeof message) {
        --left;
        printf("%d %d %u\n", message.who, message.number, Draw(message.who));
        if (!by_edge) break;
      }
      if (n != 0) continue;
      epoll_ctl(epoll, EPOLL_CTL_DEL, near[who], nullptr);
      printf("%zu has ended\n", who);
      ++gone;
    }
  }
  Join(children);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOFBF, 1 << 16);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "semaphore") return Semaphore();
  if (what == "shared-memory") return SharedMemory();
  if (what == "mutex") return Mutex();
  if (what == "condition") return Condition();
  if (what == "rwlock") return Rwlock();
  if (what == "counter") return Counter();
  if (what == "writers") return Writers();
  if (what == "fifo") return Fifo();
  if (what == "readers") return Readers();
  if (what == "select") return Select();
  if (what == "epoll") return Epoll(false);
  if (what == "edges") return Epoll(true);
  fprintf(stderr,
          "usage: meet semaphore|shared-memory|mutex|condition|rwlock|counter|writers|fifo|"
          "readers|select|epoll|edges\n");
  return 2;
}
