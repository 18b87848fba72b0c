// Ranks that share one file: in each step one after the other adds a line to it, then all read it.
// The last step begins with the file removed.
//
//   state_file PATH
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>

#include "tests/e2e/apps/record/job.h"

namespace {

constexpr int kSteps = 3;

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

// Its lines one after the other.
std::string Flat(std::string text) {
  for (char& letter : text)
    if (letter == '\n') letter = ';';
  return text;
}

void Tell(int step, const std::string& path) {
  std::cout << "rank " + std::to_string(job_rank()) + ", step " + std::to_string(step) + ": " +
                   Flat(TextOf(path)) + "\n"
            << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string path = argv[1];
  ncclComm_t comm = job_communicator();
  for (int step = 0; step < kSteps; ++step) {
    if (step + 1 == kSteps && job_rank() == 1) unlink(path.c_str());
    Wait(comm);
    Tell(step, path);
    Wait(comm);
    for (int turn = 0; turn < job_size(); ++turn) {
      if (turn == job_rank()) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::app);
        file << turn << " draws " << std::random_device()() << "\n";
      }
      Wait(comm);
    }
    Tell(step, path);
    Wait(comm);
  }
  JOB_CHECK(ncclCommDestroy(comm));
  if (job_rank() == 2) unlink(path.c_str());
  return 0;
}
