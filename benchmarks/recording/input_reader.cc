// A rank that reads clocks and files: N readings of two clocks, N reads of 4 KiB of FILE, over and
// over, and the whole of LARGE once. Prints the processor time of each in nanoseconds per call.
//
// Like any rank it has a second thread: with one alone a read costs less, in the C library
// (cancellation) and in the kernel (references to files), whether it is recorded or not.
//
//     input_reader FILE LARGE [N]
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include <sys/syscall.h>

namespace {

// Past every library: what is measured includes what hooks cost.
double CpuNs() {
  timespec t{};
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::thread([] { pause(); }).detach();
  const long n = argc > 3 ? std::atol(argv[3]) : 1000000;
  const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  const int large = open(argv[2], O_RDONLY | O_CLOEXEC);
  if (fd < 0 || large < 0) return 2;
  std::vector<char> block(4096);
  long sum = 0;
  const double begin = CpuNs();
  for (long i = 0; i < n / 2; ++i) {
    sum += std::chrono::steady_clock::now().time_since_epoch().count() & 1;
    sum += std::chrono::system_clock::now().time_since_epoch().count() & 1;
  }
  const double clocks = CpuNs();
  for (long i = 0; i < n; ++i) {
    const ssize_t got = read(fd, block.data(), block.size());
    if (got <= 0) lseek(fd, 0, SEEK_SET);
    sum += got;
  }
  const double files = CpuNs();
  long reads = 0;
  while (read(large, block.data(), block.size()) > 0) ++reads;
  const double once = CpuNs();
  std::printf("%.2f %.2f %.2f %d\n", (clocks - begin) / static_cast<double>(n),
              (files - clocks) / static_cast<double>(n),
              (once - files) / static_cast<double>(reads), sum == 0 ? 1 : 0);
  std::fflush(stdout);
  _exit(0);
}
