// One step's forward and backward pass: of the whole network on one rank, or of a stage of a
// pipeline.
#ifndef DEJA_EXAMPLES_DIGITS_RUNNER_H_
#define DEJA_EXAMPLES_DIGITS_RUNNER_H_

#include <memory>
#include <vector>

#include "comms.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "data/seeds.h"
#include "faults.h"
#include "model/network.h"
#include "options.h"
#include "rng.h"
#include "updater.h"

namespace digits {

// The two generators of the passes.
struct PassRandom {
  explicit PassRandom(const Seeds& seeds)
      : dropout(seeds.Draw(SeedUse::kDropout)),
        sample_weights(seeds.Draw(SeedUse::kSampleWeights)) {}
  Rng dropout;
  Rng sample_weights;
};

// What a runner works with and does not own.
struct RunnerParts {
  const Options& options;
  Network& network;  // or this rank's stage of it
  Weights& weights;
  PassRandom& random;
  Faults& faults;
  float
      gradient_scale;  // 1 / the samples of all replicas: the gradients' sum is the mean's gradient
};

class Runner {
 public:
  virtual ~Runner() = default;

  // Makes the gradients of the next batch, and tells `updater` as layers become ready.
  virtual LossSum Step(Updater* updater) = 0;

  // How many of `images` are recognised; 0 on a rank that does not see the result.
  virtual int CountCorrect(const std::vector<Image>& images) = 0;
};

std::unique_ptr<Runner> MakeWholeRunner(const RunnerParts& parts, Sampler* sampler);

// The first stage has the sampler, the second (null) the loss. `peer` is the other stage's rank in
// `comm`.
std::unique_ptr<Runner> MakePipelineRunner(const RunnerParts& parts, Sampler* sampler,
                                           const Communicator& comm, int peer);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_RUNNER_H_
