// Draws from every source of entropy, asks every clock and every question about the machine.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>
#include <thread>

int main(int argc, char**) {
  bool show = argc > 1;
  unsigned char b[8] = {};
  auto print = [&](const char* what) {
    if (!show) return;
    printf("%s", what);
    for (unsigned char c : b) printf(" %02x", c);
    printf("\n");
  };
  if (getrandom(b, 8, 0) != 8) return 1;
  print("getrandom");
  if (getentropy(b, 8) != 0) return 2;
  print("getentropy");
  std::random_device device;
  unsigned v = device();
  __builtin_memcpy(b, &v, 4);
  print("random_device");
  int fd = open("/dev/urandom", O_RDONLY);
  if (read(fd, b, 8) != 8) return 3;
  print("urandom");
  int copy = dup(fd);
  int high = fcntl(fd, F_DUPFD, 77);
  close(fd);
  if (read(copy, b, 8) != 8) return 4;
  print("dup");
  iovec piece{b, 8};
  if (readv(high, &piece, 1) != 8) return 5;
  print("readv");
  close(copy);
  close(high);
  // The number is given out again, to something else.
  int other = open("/proc/self/comm", O_RDONLY);
  char name[32] = {};
  if (read(other, name, sizeof name) <= 0) return 6;
  printf("%s", name);
  FILE* stream = fopen("/dev/random", "rb");
  if (fread(b, 1, 8, stream) != 8) return 7;
  print("fread");
  fclose(stream);
  std::ifstream file("/dev/urandom", std::ios::binary);
  file.read(reinterpret_cast<char*>(b), 8);
  if (file.gcount() != 8) return 8;
  if (syscall(SYS_getrandom, b, 8L, 0L) != 8) return 9;
  print("syscall");

  timespec t;
  timeval tv;
  if (clock_gettime(CLOCK_REALTIME, &t) != 0 || gettimeofday(&tv, nullptr) != 0) return 10;
  time_t now = time(nullptr);
  if (clock_gettime(CLOCK_MONOTONIC, &t) != 0 || clock_gettime(12345, &t) == 0) return 11;
  if (timespec_get(&t, TIME_UTC) != TIME_UTC || llabs(now - t.tv_sec) > 5) return 12;

  char host[256];
  utsname names;
  cpu_set_t set;
  if (gethostname(host, sizeof host) != 0 || uname(&names) != 0) return 13;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 14;
  if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) != 0) return 15;
  if (getpid() != gettid() || getppid() <= 0) return 16;
  if (sysconf(_SC_NPROCESSORS_ONLN) != get_nprocs() || get_nprocs_conf() < get_nprocs()) return 17;
  if (sysconf(_SC_PAGESIZE) != 4096) return 18;
  if (std::thread::hardware_concurrency() == 0) return 19;
  printf("done\n");
}
