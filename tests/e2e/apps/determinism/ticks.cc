// Reads clocks without end, and keeps count of the readings where another process can see it.
// Argument 1 is a file of 16 bytes: the number of readings and the last one.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <thread>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 16) != 0) return 2;
  void* memory = mmap(nullptr, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 2;
  auto* said = static_cast<std::atomic<int64_t>*>(memory);
  for (int64_t count = 1;; ++count) {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    said[1].store(t.tv_sec * 1000000000 + t.tv_nsec, std::memory_order_relaxed);
    said[0].store(count, std::memory_order_release);
    if (count % 1000 == 0) std::this_thread::yield();
  }
}
