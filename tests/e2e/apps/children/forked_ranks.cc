// A launcher that is no rank itself: it draws a seed, forks the ranks of a job one after the other,
// and waits for them. What a rank computes depends on what its parent drew before the fork.
//
//   forked_ranks [--ranks=2] [--steps=3] [--draws=0] [--waits] [--again]
//     --draws: takes so many pieces of 64 random bytes first
//     --waits: waits for what each rank says before it forks the next one, which depends on it
//     --again: each rank is forked by a forked child
#include <sys/random.h>
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
  const std::string last = argc > 1 ? argv[argc - 1] : "";
  const bool again = last == "--again";
  const bool waits = last == "--waits";
  unsigned seed = std::random_device()();
  for (int i = job_number(argc, argv, "--draws", 0); i > 0; --i) {
    unsigned drawn[16];
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn) return 80;
    seed = seed * 31 + drawn[i % 16];
  }
  ncclUniqueId id;
  JOB_CHECK(ncclGetUniqueId(&id));
  std::vector<pid_t> made;
  for (int rank = 0; rank < ranks; ++rank) {
    const unsigned own = seed + std::random_device()();
    int ends[2];
    if (pipe(ends) != 0) return 81;
    const pid_t pid = fork();
    if (pid == 0 && waits) {
      const unsigned said = std::random_device()();
      if (write(ends[1], &said, sizeof said) != sizeof said) return 82;
    }
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
    unsigned said = 0;
    if (waits && read(ends[0], &said, sizeof said) != sizeof said) return 83;
    seed ^= said;
    close(ends[0]);
    close(ends[1]);
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
