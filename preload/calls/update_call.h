// UpdateCall: deja_update_t as the program hands it over, and the event of it.
//
// The same memory layout as in include/deja.h, which declares the entry points weak and so cannot
// be included where they are defined; a unit test compares the two. Any thread; nothing is
// dereferenced.
#ifndef DEJA_PRELOAD_CALLS_UPDATE_CALL_H_
#define DEJA_PRELOAD_CALLS_UPDATE_CALL_H_

#include <cstdint>

#include "format/wire/messages.h"

namespace deja::preload {

struct UpdateCall {
  uint32_t optimizer = 0;
  uint32_t dtype = 0;
  uint64_t count = 0;
  const void* parameters = nullptr;
  const void* first_moment = nullptr;
  const void* second_moment = nullptr;
  const void* gradient = nullptr;
  uint64_t updates = 0;
  double learning_rate = 0;
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  double gradient_scale = 0;
  int nesterov = 0;
};

// The update as an event. Addresses stand for the tensors.
inline format::OptimizerUpdate DescribeUpdate(const UpdateCall& call) {
  const auto address = [](const void* data) { return reinterpret_cast<uint64_t>(data); };
  format::OptimizerUpdate update;
  update.optimizer = call.optimizer;
  update.dtype = call.dtype;
  update.count = call.count;
  update.parameters = address(call.parameters);
  update.first_moment = address(call.first_moment);
  update.second_moment = address(call.second_moment);
  update.gradient = address(call.gradient);
  update.updates = call.updates;
  update.learning_rate = call.learning_rate;
  update.beta1 = call.beta1;
  update.beta2 = call.beta2;
  update.epsilon = call.epsilon;
  update.weight_decay = call.weight_decay;
  update.gradient_scale = call.gradient_scale;
  update.nesterov = call.nesterov != 0 ? 1 : 0;
  return update;
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_UPDATE_CALL_H_
