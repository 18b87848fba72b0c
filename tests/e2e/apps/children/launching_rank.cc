// A rank that starts the other one itself, as Lightning's ddp does: a program of its own, which
// gets the job's id by its standard input. The first looks whether the other still runs in each
// step, waits for its end, and tells how it ended.
//
//   launching_rank
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <random>
#include <string>

#include "tests/e2e/apps/record/job.h"

extern char** environ;

namespace {

constexpr int kSteps = 5;

void Work(const ncclUniqueId& id, int rank, pid_t other) {
  ncclComm_t comm = nullptr;
  JOB_CHECK(ncclCommInitRank(&comm, 2, id, rank));
  for (int step = 0; step < kSteps; ++step) {
    auto value = static_cast<float>(std::random_device()() % 1000);
    JOB_CHECK(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr));
    const bool runs = other == 0 || waitpid(other, nullptr, WNOHANG) == 0;
    std::cout << "rank " + std::to_string(rank) + ", step " + std::to_string(step) + ": " +
                     std::to_string(value) + (runs ? "\n" : ", the other has ended\n")
              << std::flush;
  }
  JOB_CHECK(ncclCommDestroy(comm));
}

// The other rank's program, with `ends` of a pipe as its standard input.
pid_t StartOther(char* program, const int* ends) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  char word[] = "1";
  char* argv[] = {program, word, nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, program, &actions, nullptr, argv, environ) != 0) _exit(81);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

}  // namespace

int main(int argc, char** argv) {
  ncclUniqueId id;
  if (argc > 1) {
    if (read(STDIN_FILENO, &id, sizeof id) != sizeof id) return 82;
    Work(id, 1, 0);
    return 3;
  }
  JOB_CHECK(ncclGetUniqueId(&id));
  int ends[2];
  if (pipe(ends) != 0) return 83;
  const pid_t other = StartOther(argv[0], ends);
  if (write(ends[1], &id, sizeof id) != sizeof id) return 84;
  Work(id, 0, other);
  int status = 0;
  if (waitpid(other, &status, 0) != other) return 85;
  std::cout << "rank 0: process " + std::to_string(other) + " ended with " +
                   std::to_string(WEXITSTATUS(status)) + "\n";
  return 0;
}
