// A rank that starts the other one itself, as Lightning's ddp does: a program of its own, which
// gets the job's id as an argument. The first looks whether the other still runs in each step,
// waits for its end, and tells how it ended.
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

std::string TextOf(const ncclUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) {
    text += static_cast<char>('a' + (byte >> 4 & 15));
    text += static_cast<char>('a' + (byte & 15));
  }
  return text;
}

ncclUniqueId IdOf(const std::string& text) {
  ncclUniqueId id;
  for (size_t i = 0; i < sizeof id.internal; ++i)
    id.internal[i] = static_cast<char>((text[2 * i] - 'a') << 4 | (text[2 * i + 1] - 'a'));
  return id;
}

pid_t StartOther(char* program, std::string word) {
  char* argv[] = {program, word.data(), nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, program, nullptr, nullptr, argv, environ) != 0) _exit(81);
  return pid;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    Work(IdOf(argv[1]), 1, 0);
    return 3;
  }
  ncclUniqueId id;
  JOB_CHECK(ncclGetUniqueId(&id));
  const pid_t other = StartOther(argv[0], TextOf(id));
  Work(id, 0, other);
  int status = 0;
  if (waitpid(other, &status, 0) != other) return 82;
  std::cout << "rank 0: process " + std::to_string(other) + " ended with " +
                   std::to_string(WEXITSTATUS(status)) + "\n";
  return 0;
}
