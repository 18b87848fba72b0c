// A program without communicators that reads its data in other processes. A worker lives as long as
// the program and reads the block that it is asked for. In each step a helper reads one block of
// another file and is gone. Each step's result depends on what both have read.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "include/deja.hpp"

namespace {

constexpr size_t kBlock = 16384;

// 0 if it could not be read.
uint64_t SumOfBlock(int fd, uint64_t block) {
  std::vector<unsigned char> bytes(kBlock);
  if (pread(fd, bytes.data(), kBlock, static_cast<off_t>(block * kBlock)) !=
      static_cast<ssize_t>(kBlock))
    return 0;
  uint64_t sum = 1469598103934665603ull;
  for (const unsigned char byte : bytes) sum = (sum ^ byte) * 1099511628211ull;
  return sum;
}

[[noreturn]] void Work(const char* path, int orders, int answers) {
  const int fd = open(path, O_RDONLY);
  uint64_t block = 0;
  while (read(orders, &block, sizeof block) == sizeof block) {
    const uint64_t sum = SumOfBlock(fd, block);
    if (write(answers, &sum, sizeof sum) != sizeof sum) break;
  }
  _exit(0);
}

uint64_t Help(const char* path, uint64_t block) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) std::exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    close(pipe_ends[0]);
    const uint64_t sum = SumOfBlock(open(path, O_RDONLY), block);
    _exit(write(pipe_ends[1], &sum, sizeof sum) == sizeof sum ? 0 : 1);
  }
  close(pipe_ends[1]);
  uint64_t sum = 0;
  if (read(pipe_ends[0], &sum, sizeof sum) != sizeof sum) std::exit(1);
  waitpid(pid, nullptr, 0);
  close(pipe_ends[0]);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const char* worker_file = argv[1];
  const char* helper_file = argv[2];
  const auto steps = static_cast<uint64_t>(std::atoi(argv[3]));
  const auto blocks = static_cast<uint64_t>(std::atoi(argv[4]));  // fewer than steps: epochs
  const int pause_us = std::atoi(argv[5]);
  int orders[2];
  int answers[2];
  if (pipe(orders) != 0 || pipe(answers) != 0) return 1;
  if (fork() == 0) {
    close(orders[1]);
    close(answers[0]);
    Work(worker_file, orders[0], answers[1]);
  }
  close(orders[0]);
  close(answers[1]);
  uint64_t trail = 0;
  const auto registered = deja::Registered::State("trail", trail);
  for (uint64_t step = 0; step < steps; ++step) {
    step = deja_step(step);
    const uint64_t block = step % blocks;
    uint64_t sum = 0;
    if (write(orders[1], &block, sizeof block) != sizeof block) return 1;
    if (read(answers[0], &sum, sizeof sum) != sizeof sum) return 1;
    trail = (trail ^ sum) * 31 + Help(helper_file, block);
    if (pause_us != 0) usleep(static_cast<useconds_t>(pause_us));
  }
  std::printf("trail %016lx\n", static_cast<unsigned long>(trail));
  close(orders[1]);
  wait(nullptr);
  return 0;
}
