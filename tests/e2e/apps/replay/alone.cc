// A training loop with one thread, which reads a file as it goes and writes another: both count in
// its state. In gdb a replay of it is gone back in by images of the process.
//
//   replay_alone DATA [--steps N] [--thread-at STEP] [--child-at STEP]
#include <fcntl.h>
#include <nccl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "include/deja.h"
#include "tests/e2e/apps/replay/check.h"

namespace {

constexpr size_t kSize = 3000;
constexpr size_t kRead = 16;

uint64_t Mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 1099511628211ull;
}

__attribute__((noinline)) void Tell(int rank, const char* what, int number, uint64_t trail,
                                    float weight) {
  std::printf("rank %d %s %d: %lx %.9g\n", rank, what, number, static_cast<unsigned long>(trail),
              static_cast<double>(weight));
}

uint64_t ReadOn(int data, uint64_t trail) {
  unsigned char bytes[kRead] = {};
  const ssize_t n = read(data, bytes, sizeof bytes);
  for (ssize_t i = 0; i < n; ++i) trail = Mix(trail, bytes[i]);
  return Mix(trail, static_cast<uint64_t>(lseek(data, 0, SEEK_CUR)));
}

uint64_t WriteOn(int log, int step, uint64_t trail) {
  const std::string line = "step " + std::to_string(step) + "\n";
  if (write(log, line.data(), line.size()) < 0) std::exit(2);
  struct stat info {};
  if (fstat(log, &info) != 0) std::exit(2);
  return Mix(trail, static_cast<uint64_t>(info.st_size));
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 30;
  int thread_at = -1;
  int child_at = -1;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    (flag == "--steps"       ? steps
     : flag == "--thread-at" ? thread_at
                             : child_at) = std::atoi(argv[i + 1]);
  }
  const int rank = std::atoi(std::getenv("RANK"));
  const int data = open(argv[1], O_RDONLY | O_CLOEXEC);
  const std::string path = "log-" + std::to_string(rank) + ".txt";
  const int log = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (data < 0 || log < 0) return 2;
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, std::atoi(std::getenv("WORLD_SIZE")), id, rank));
  std::mt19937_64 generator(std::random_device{}());
  std::normal_distribution<float> normal;
  std::vector<float> weights(kSize);
  std::vector<float> gradient(kSize);
  uint64_t trail = 1469598103934665603ull;  // of everything that the steps have seen
  std::thread thread;
  std::atomic<bool> stop = false;
  for (int step = 0; step < steps; ++step) {
    deja_step(static_cast<uint64_t>(step));
    Tell(rank, "step", step, trail, weights[0]);
    if (step == thread_at)
      thread = std::thread([&] {
        while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    if (step == child_at) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      waitpid(child, nullptr, 0);
    }
    for (float& g : gradient) g = normal(generator) + weights[0];
    trail = Mix(trail, std::random_device{}());
    trail = Mix(trail,
                static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
    trail = ReadOn(data, trail);
    trail = WriteOn(log, step, trail);
    Tell(rank, "operation", step + 1, trail, weights[0]);
    CHECK(
        ncclAllReduce(gradient.data(), gradient.data(), kSize, ncclFloat, ncclSum, comm, nullptr));
    for (size_t i = 0; i < kSize; ++i) weights[i] -= 0.01f * gradient[i];
  }
  stop = true;
  if (thread.joinable()) thread.join();
  std::printf("rank %d trail %016lx\n", rank, static_cast<unsigned long>(trail));
  CHECK(ncclCommDestroy(comm));
  return 0;
}
