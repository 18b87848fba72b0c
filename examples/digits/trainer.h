// The training loop.
#ifndef DEJA_EXAMPLES_DIGITS_TRAINER_H_
#define DEJA_EXAMPLES_DIGITS_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comms.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "data/seeds.h"
#include "deja.hpp"
#include "faults.h"
#include "model/device.h"
#include "model/metrics.h"
#include "model/network.h"
#include "options.h"
#include "runner.h"
#include "updater.h"
#include "watchdog.h"

namespace digits {

// Which part of the job a rank is. Rank = replica * stages + stage.
struct Place {
  Place(const Job& job, Mode mode);

  int stages = 1;
  int stage = 0;
  int replicas = 1;
  int replica = 0;
};

class Trainer {
 public:
  // The arguments must outlive the trainer.
  Trainer(const Options& options, const Job& job, const Dataset& dataset);

  // Trains, tests, and prints the results. The process's exit code: 1 when the loss is not a number
  // any more, or when ranks that must have the same weights do not.
  int Run();

 private:
  void ConnectStages();
  void ShareInitialWeights();
  float LearningRate(int step) const;
  bool Report(int step, const LossSum& loss);
  bool Finish();
  void ShowToDeja();
  void RegisterWithDeja();

  const Options& options_;
  const Dataset& dataset_;
  const Place place_;
  const Seeds seeds_;
  const std::unique_ptr<Device> device_;
  Communicator world_;
  Network network_;
  Weights weights_;
  PassRandom random_;
  Faults faults_;
  std::unique_ptr<Communicator> pipe_;  // the stages of this replica (hybrid)
  std::unique_ptr<Communicator> data_;  // the replicas of this stage (hybrid)
  std::unique_ptr<Sampler> sampler_;    // of the first stage
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Watchdog> watchdog_;  // on a GPU
  std::vector<deja::Registered> registered_;
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_TRAINER_H_
