#include "network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../data/dataset.h"

namespace digits {

Network::Network(Device& device, std::vector<std::unique_ptr<Layer>> layers)
    : device_(&device), layers_(std::move(layers)) {
  offsets_.push_back(0);
  for (const auto& layer : layers_) offsets_.push_back(offsets_.back() + layer->parameters());
}

void Network::Initialize(Rng* random, float* parameters) const {
  for (size_t i = 0; i < layers(); ++i) {
    const size_t weights = layer(i).weight_rows() * layer(i).weight_columns();
    const float deviation =
        weights == 0 ? 0 : std::sqrt(2.0f / static_cast<float>(layer(i).weight_rows()));
    float* at = parameters + offset(i);
    std::generate(at, at + weights, [&] { return deviation * random->Normal(); });
    std::fill(at + weights, parameters + offset(i + 1), 0.0f);
  }
}

Tape Network::MakeTape(size_t batch) const {
  Tape tape;
  tape.batch = batch;
  tape.values.emplace_back(*device_, batch * inputs());
  for (const auto& layer : layers_) tape.values.emplace_back(*device_, batch * layer->outputs());
  return tape;
}

void Network::Forward(const float* parameters, Tape* tape, Rng* dropout) {
  for (size_t i = 0; i < layers(); ++i) {
    layers_[i]->Forward(tape->batch, parameters + offset(i), tape->values[i].data(),
                        tape->values[i + 1].data(), dropout);
  }
}

const float* Network::Backward(const float* parameters, Tape* tape, float* out_gradient,
                               float* gradients, bool want_input_gradient,
                               const std::function<void(size_t)>& layer_done) {
  for (size_t i = layers(); i-- > 0;) {
    float* in_gradient = nullptr;
    if (i > 0 || want_input_gradient) {
      Array<float>& scratch = scratch_[i % 2];
      const size_t size = tape->batch * layer(i).inputs();
      if (scratch.size() < size) scratch = Array<float>(*device_, size);
      in_gradient = scratch.data();
    }
    layers_[i]->Backward(tape->batch, parameters + offset(i), tape->values[i].data(),
                         tape->values[i + 1].data(), out_gradient, gradients + offset(i),
                         in_gradient);
    layer_done(i);
    out_gradient = in_gradient;
  }
  return out_gradient;
}

Network BuildNetwork(Device& device, Part part) {
  std::vector<std::unique_ptr<Layer>> layers;
  if (part != Part::kBack) {
    layers.push_back(device.MakeConvolution("conv1", kSide, 1, 8));
    layers.push_back(device.MakeConvolution("conv2", kSide, 8, 16));
    layers.push_back(device.MakeMaxPool("pool", kSide, 16));
  }
  if (part != Part::kFront) {
    constexpr size_t kFeatures = kPixels / 4 * 16;
    layers.push_back(device.MakeDropout("dropout", kFeatures, 0.25f));
    layers.push_back(device.MakeDense("dense1", kFeatures, 32, Activation::kRelu));
    layers.push_back(device.MakeDense("dense2", 32, kClasses, Activation::kNone));
  }
  return Network(device, std::move(layers));
}

LossSum SumOfLosses(const float* terms, size_t batch) {
  LossSum sum;
  for (size_t sample = 0; sample < batch; ++sample) {
    sum.loss += terms[2 * sample];
    sum.correct += terms[2 * sample + 1] != 0 ? 1 : 0;
  }
  return sum;
}

uint64_t HashWeights(const std::vector<float>& weights) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(weights.data());
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < weights.size() * sizeof(float); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

}  // namespace digits
