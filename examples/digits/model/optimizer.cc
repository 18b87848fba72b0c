#include "optimizer.h"

#include <cmath>

#include "../cuda/kernels.h"

namespace digits {

void Adam::Update(float learning_rate, const float* gradients, float* parameters) {
  using kernels::kMeanDecay;
  using kernels::kSquareDecay;
  ++updates_;
  const deja_update_t update = {DEJA_ADAM,
                                DEJA_FLOAT32,
                                mean_.size(),
                                parameters,
                                mean_.data(),
                                square_.data(),
                                gradients,
                                static_cast<uint64_t>(updates_),
                                learning_rate,
                                kMeanDecay,
                                kSquareDecay,
                                kernels::kEpsilon,
                                0.0,
                                1.0,
                                0};
  // Only tensors that are registered where they lie can be predicted.
  if (device_.is_host()) deja_update(&update);
  const float mean_scale = 1 / (1 - std::pow(kMeanDecay, static_cast<float>(updates_)));
  const float square_scale = 1 / (1 - std::pow(kSquareDecay, static_cast<float>(updates_)));
  device_.Update({gradients, mean_.data(), square_.data(), parameters, mean_.size(), learning_rate,
                  mean_scale, square_scale});
}

}  // namespace digits
