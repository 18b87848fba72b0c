#include "tests/fakes/cuda/sim_habits.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace cusim {
namespace {

// Below `limit`, and of no recording of the C library.
uint32_t Chance(uint32_t limit) {
  uint32_t word = 0;
  if (syscall(SYS_getrandom, &word, sizeof word, 0) != sizeof word) return 0;
  return word % limit;
}

void LookAtClock(uint32_t times) {
  timespec now{};
  for (uint32_t i = 0; i < times; ++i) clock_gettime(CLOCK_MONOTONIC_RAW, &now);
}

void* Helper(void*) {
  LookAtClock(Chance(100));
  for (;;) pause();
}

void MakeThreads(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, &Helper, nullptr) == 0) pthread_detach(thread);
  }
}

void ReadFile(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char bytes[256];
  while (read(fd, bytes, sizeof bytes) > 0 && Chance(4) != 0) {
  }
  close(fd);
}

// By which other processes would ask for this one's memory. Never closed.
bool Listen() {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const int size = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "cuda-sim-%ld-%u",
                            syscall(SYS_getpid), Chance(1 << 30));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&name), length) == 0 &&
         listen(fd, 4) == 0;
}

}  // namespace

bool StartHabits() {
  MakeThreads(1 + Chance(4));
  uint64_t words[4];
  for (uint32_t i = 1 + Chance(3); i > 0; --i)
    if (getrandom(words, sizeof words, 0) != sizeof words) return false;
  LookAtClock(1 + Chance(200));
  for (uint32_t i = Chance(4); i > 0; --i) ReadFile("/proc/cpuinfo");
  ReadFile("/proc/sys/vm/mmap_min_addr");
  cpu_set_t own;
  cpu_set_t told;
  if (syscall(SYS_sched_getaffinity, 0, sizeof own, &own) <= 0 ||
      sched_getaffinity(0, sizeof told, &told) != 0)
    return false;
  // It asks the kernel's driver in the name of this process.
  return getpid() == syscall(SYS_getpid) && Listen();
}

void WaitingHabits() {
  LookAtClock(Chance(500));
}

void TranslatingHabits() {
  const char* folder = std::getenv("CUDA_CACHE_PATH");
  if (folder == nullptr) return;
  const int fd = open((std::string(folder) + "/index").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  uint64_t words[2] = {};
  while (read(fd, words, sizeof words) == sizeof words) {
  }
  words[0] = words[1] = Chance(UINT32_MAX);
  (void)!write(fd, words, sizeof words);
  close(fd);
}

}  // namespace cusim
