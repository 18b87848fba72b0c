#include "network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "dataset.h"

namespace digits {

Network::Network(std::vector<std::unique_ptr<Layer>> layers) : layers_(std::move(layers)) {
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
  tape.values.emplace_back(batch * inputs());
  for (const auto& layer : layers_) tape.values.emplace_back(batch * layer->outputs());
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
      scratch_[i % 2].resize(tape->batch * layer(i).inputs());
      in_gradient = scratch_[i % 2].data();
    }
    layers_[i]->Backward(tape->batch, parameters + offset(i), tape->values[i].data(),
                         tape->values[i + 1].data(), out_gradient, gradients + offset(i),
                         in_gradient);
    layer_done(i);
    out_gradient = in_gradient;
  }
  return out_gradient;
}

Network BuildNetwork(Part part) {
  std::vector<std::unique_ptr<Layer>> layers;
  if (part != Part::kBack) {
    layers.push_back(MakeConvolution("conv1", kSide, 1, 8));
    layers.push_back(MakeConvolution("conv2", kSide, 8, 16));
    layers.push_back(MakeMaxPool("pool", kSide, 16));
  }
  if (part != Part::kFront) {
    constexpr size_t kFeatures = kPixels / 4 * 16;
    layers.push_back(MakeDropout("dropout", kFeatures, 0.25f));
    layers.push_back(MakeDense("dense1", kFeatures, 32, Activation::kRelu));
    layers.push_back(MakeDense("dense2", 32, kClasses, Activation::kNone));
  }
  return Network(std::move(layers));
}

LossSum Loss(size_t batch, const float* logits, const int32_t* labels, const float* weights,
             float scale, float* gradient) {
  LossSum sum;
  for (size_t sample = 0; sample < batch; ++sample, logits += kClasses) {
    const size_t label = static_cast<size_t>(labels[sample]);
    const float weight = weights ? weights[sample] : 1.0f;
    const float* best = std::max_element(logits, logits + kClasses);
    float exponentials[kClasses];
    float total = 0;
    for (size_t i = 0; i < kClasses; ++i) total += exponentials[i] = std::exp(logits[i] - *best);
    sum.loss += weight * (std::log(total) - (logits[label] - *best));
    sum.correct += best - logits == labels[sample] ? 1 : 0;
    if (!gradient) continue;
    for (size_t i = 0; i < kClasses; ++i) {
      *gradient++ = scale * weight * (exponentials[i] / total - (i == label ? 1.0f : 0.0f));
    }
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
