// A launcher that is no rank itself: it draws a seed, forks the ranks of a job one after the other,
// and waits for them. What a rank computes depends on what its parent drew before the fork.
//
//   forked_ranks [--ranks=2] [--steps=3] [--again]    --again: each rank is forked by a forked
//   child
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "tests/e2e/apps/record/job.h"

namespace {

int Rank(const ncclUniqueId& id, int rank, int ranks, unsigned seed, int steps) {
  ncclComm_t comm = nullptr;
  JOB_CHECK(ncclCommInitRank(&comm, ranks, id, rank));
  unsigned sum = seed;
  for (int step = 0; step < steps; ++step) {
    auto value = static_cast<float>((std::random_device()() ^ sum) % 1000);
    JOB_CHECK(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr));
    sum = sum * 31 + static_cast<unsigned>(value);
    std::cout << "rank " + std::to_string(rank) + ", process " + std::to_string(getpid()) + " of " +
                     std::to_string(getppid()) + ", step " + std::to_string(step) + ": " +
                     std::to_string(sum) + "\n"
              << std::flush;
  }
  // A child of the rank's own, as a data loader has.
  const pid_t child = fork();
  if (child == 0) {
    std::cout << "rank " + std::to_string(rank) + " has " + std::to_string(std::random_device()()) +
                     "\n"
              << std::flush;
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  JOB_CHECK(ncclCommDestroy(comm));
  return rank == 0 ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = job_number(argc, argv, "--ranks", 2);
  const int steps = job_number(argc, argv, "--steps", 3);
  const bool again = argc > 1 && std::string(argv[argc - 1]) == "--again";
  const unsigned seed = std::random_device()();
  ncclUniqueId id;
  JOB_CHECK(ncclGetUniqueId(&id));
  std::vector<pid_t> made;
  for (int rank = 0; rank < ranks; ++rank) {
    const unsigned own = seed + std::random_device()();
    const pid_t pid = fork();
    if (pid == 0 && again) {
      const unsigned more = std::random_device()();
      const pid_t grandchild = fork();
      if (grandchild == 0) return Rank(id, rank, ranks, own ^ more, steps);
      int status = 0;
      waitpid(grandchild, &status, 0);
      return WEXITSTATUS(status);
    }
    if (pid == 0) return Rank(id, rank, ranks, own, steps);
    made.push_back(pid);
  }
  int worst = 0;
  for (const pid_t pid : made) {
    int status = 0;
    waitpid(pid, &status, 0);
    worst = std::max(worst, WEXITSTATUS(status));
  }
  std::cout << "the launcher is done\n";
  return worst == 3 ? 0 : 1;
}
