#include "optimizer.h"

#include <cmath>

namespace digits {

void Adam::Update(float learning_rate, const float* gradients, float* parameters) {
  constexpr float kMeanDecay = 0.9f;
  constexpr float kSquareDecay = 0.999f;
  constexpr float kEpsilon = 1e-8f;
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
                                kEpsilon,
                                0.0,
                                1.0,
                                0};
  deja_update(&update);
  const float mean_scale = 1 / (1 - std::pow(kMeanDecay, static_cast<float>(updates_)));
  const float square_scale = 1 / (1 - std::pow(kSquareDecay, static_cast<float>(updates_)));
  for (size_t i = 0; i < mean_.size(); ++i) {
    mean_[i] = kMeanDecay * mean_[i] + (1 - kMeanDecay) * gradients[i];
    square_[i] = kSquareDecay * square_[i] + (1 - kSquareDecay) * gradients[i] * gradients[i];
    parameters[i] -=
        learning_rate * mean_[i] * mean_scale / (std::sqrt(square_[i] * square_scale) + kEpsilon);
  }
}

}  // namespace digits
