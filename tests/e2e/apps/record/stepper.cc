// A training loop without the training: steps of all-reduces that are never the same twice.
//
//   --steps=N --calls=N --count=N   steps, all-reduces in each, floats in each
//   --pause-us=N                    after each step
//   --mute                          the steps are not named
//   --stop=S --stop-ms=N            in step S rank 1 comes late by so much
//   --fail=S                        in step S rank 1 ends with exit code 7, and the others go on
//   alone
//   --term=S                        the same, and it is ended by SIGTERM
//   --abort=S                       the same, and it is ended by abort()
#include <signal.h>
#include <unistd.h>

#include <vector>

#include "include/deja.h"
#include "tests/e2e/apps/record/job.h"

int main(int argc, char** argv) {
  const int steps = job_number(argc, argv, "--steps", 20);
  const int calls = job_number(argc, argv, "--calls", 2);
  const auto count = static_cast<size_t>(job_number(argc, argv, "--count", 16384));
  const int pause_us = job_number(argc, argv, "--pause-us", 0);
  const int stop = job_number(argc, argv, "--stop", 0);
  const int stop_ms = job_number(argc, argv, "--stop-ms", 0);
  const int term = job_number(argc, argv, "--term", 0);
  const int abort_at = job_number(argc, argv, "--abort", 0);
  const int fail = job_number(argc, argv, "--fail", term != 0 ? term : abort_at);
  bool mute = false;
  for (int i = 1; i < argc; ++i) mute = mute || strcmp(argv[i], "--mute") == 0;

  ncclComm_t comm = job_communicator();
  std::vector<float> data(count);
  std::vector<float> sum(count);
  double total = 0;
  for (int step = 1; step <= steps; ++step) {
    if (!mute) deja_step(static_cast<uint64_t>(step));
    if (step == stop && job_rank() == 1) usleep(static_cast<useconds_t>(stop_ms) * 1000);
    if (step == term && job_rank() == 1) raise(SIGTERM);
    if (step == abort_at && job_rank() == 1) abort();
    if (step == fail && job_rank() == 1) exit(7);
    for (int call = 0; call < calls && (fail == 0 || step < fail); ++call) {
      auto word = static_cast<uint32_t>(step * 1000 + call * 10 + job_rank());
      for (float& value : data) {
        word = word * 1664525 + 1013904223;
        value = static_cast<float>(word >> 16);
      }
      JOB_CHECK(ncclAllReduce(data.data(), sum.data(), count, ncclFloat32, ncclSum, comm, nullptr));
      for (const float value : sum) total += value;
    }
    if (pause_us != 0) usleep(static_cast<useconds_t>(pause_us));
  }
  printf("rank %d of %d: %.0f\n", job_rank(), job_size(), total);
  return 0;
}
