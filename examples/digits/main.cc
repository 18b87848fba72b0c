// digits_train: trains a small network on handwritten digits with several processes on the NCCL
// API, in host memory or on GPUs. See README.md for what it is good for.
#include <cstdio>

#include "comms.h"
#include "data/dataset.h"
#include "options.h"
#include "trainer.h"

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF,
               0);  // whole lines, also into a pipe and when the process dies
  const digits::Options options = digits::ParseOptions(argc, argv);
  const digits::Dataset dataset = digits::LoadDataset(options.data);
  const digits::Job job = digits::JobFromEnvironment();
  return digits::Trainer(options, job, dataset).Run();
}
