// Ranks that take turns by a file that only one of them can make. Rank 0 makes it first; the others
// find that it is taken, and wait until it is gone.
//
//   claimed_file PATH
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>

#include "tests/e2e/apps/record/job.h"

namespace {

void Meet(ncclComm_t comm) {
  float one = 1;
  JOB_CHECK(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, comm, nullptr));
}

// Whether the file is this rank's now.
bool Claim(const std::string& path) {
  const int fd = open(path.c_str(), O_CREAT | O_EXCL, 0600);
  const std::string how = fd >= 0 ? "made it" : std::strerror(errno);
  std::cout << "rank " + std::to_string(job_rank()) + ": " + how + "\n" << std::flush;
  if (fd >= 0) close(fd);
  return fd >= 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string path = argv[1];
  ncclComm_t comm = job_communicator();
  if (job_rank() == 0 && !Claim(path)) return 1;
  Meet(comm);
  if (job_rank() != 0 && Claim(path)) return 1;
  Meet(comm);
  if (job_rank() == 0) unlink(path.c_str());
  while (access(path.c_str(), F_OK) == 0) usleep(1000);
  Meet(comm);
  for (int turn = 0; turn < job_size(); ++turn) {
    if (turn == job_rank() && Claim(path)) unlink(path.c_str());
    Meet(comm);
  }
  JOB_CHECK(ncclCommDestroy(comm));
  return 0;
}
