// What the replicas of the network make of their gradients: one update of the weights, the same on
// all of them.
#ifndef DEJA_EXAMPLES_DIGITS_UPDATER_H_
#define DEJA_EXAMPLES_DIGITS_UPDATER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "bucketed_reducer.h"
#include "comms.h"
#include "faults.h"
#include "model/device.h"
#include "model/network.h"
#include "model/optimizer.h"

namespace digits {

// The parameters of a network, or of a stage of it, in the network's layout. Both arrays may be
// padded at their end.
struct Weights {
  Array<float> values;
  Array<float> gradients;
};

// Everything that is handed to an updater must outlive it.
class Updater {
 public:
  virtual ~Updater() = default;

  // Layer `i`'s gradient is complete.
  virtual void LayerReady(size_t i) { static_cast<void>(i); }

  // All layers' gradients are complete: sums them over the replicas, changes the weights and clears
  // the gradients.
  virtual void Finish(float learning_rate) = 0;
};

// Buckets are all-reduced during the backward pass; every replica updates everything.
std::unique_ptr<Updater> MakeBucketedUpdater(const Communicator& replicas, const Network& network,
                                             size_t bucket_bytes, Weights* weights, Faults* faults);

// Every replica gets the sum of its share of the gradients, updates that share of the weights and
// sends it to all. Pads the weights to a multiple of the number of replicas.
std::unique_ptr<Updater> MakeShardedUpdater(Device& device, const Communicator& replicas,
                                            Weights* weights, Faults* faults);

// The ranks `replicas` of `world` send each other their gradients, point to point, and each adds
// them in the order of `replicas`.
std::unique_ptr<Updater> MakeExchangeUpdater(Device& device, const Communicator& world,
                                             std::vector<int> replicas, Weights* weights,
                                             Faults* faults);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_UPDATER_H_
