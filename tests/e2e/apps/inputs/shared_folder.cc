// Ranks that work in one folder, which one of them makes. Each writes a file, and after a
// collective reads those of the others, removes its own and looks again.
//
//   shared_folder FOLDER
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/e2e/apps/record/job.h"

namespace {

void Wait(ncclComm_t comm) {
  float one = 1;
  JOB_CHECK(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, comm, nullptr));
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  if (!file) return "nothing";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  ncclComm_t comm = job_communicator();
  if (job_rank() == 0 && mkdir(folder.c_str(), 0777) != 0) return 3;
  Wait(comm);
  const std::string own = folder + "/of-" + std::to_string(job_rank());
  std::ofstream(own + ".new") << "rank " << job_rank() << " of process " << getpid();
  if (rename((own + ".new").c_str(), own.c_str()) != 0) return 4;
  Wait(comm);
  for (int rank = 0; rank < job_size(); ++rank)
    std::cout << "rank " + std::to_string(job_rank()) + " finds " +
                     TextOf(folder + "/of-" + std::to_string(rank)) + "\n"
              << std::flush;
  Wait(comm);
  if (job_rank() != 0) unlink(own.c_str());
  Wait(comm);
  for (int rank = 0; rank < job_size(); ++rank)
    std::cout << "rank " + std::to_string(job_rank()) + " then finds " +
                     TextOf(folder + "/of-" + std::to_string(rank)) + "\n"
              << std::flush;
  JOB_CHECK(ncclCommDestroy(comm));
  return 0;
}
