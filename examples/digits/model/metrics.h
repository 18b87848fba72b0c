// What the ranks tell each other about the training, and what rank 0 prints of it.
#ifndef DEJA_EXAMPLES_DIGITS_MODEL_METRICS_H_
#define DEJA_EXAMPLES_DIGITS_MODEL_METRICS_H_

#include <cstdint>
#include <vector>

#include "../comms.h"
#include "device.h"

namespace digits {

struct Metrics {
  float loss = 0;  // a sum over the samples
  float correct = 0;
  float samples = 0;
};

// The sum over all ranks, the same on every rank.
Metrics GatherMetrics(Device& device, const Communicator& world, const Metrics& mine);

// Every rank's value, by rank.
std::vector<uint64_t> GatherHashes(Device& device, const Communicator& world, uint64_t mine);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_MODEL_METRICS_H_
