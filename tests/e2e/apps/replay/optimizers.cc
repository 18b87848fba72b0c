// A training loop with one of several optimizers, each computed as PyTorch does on processors,
// which says what its optimizer does.
//
//   replay_optimizers KIND [--steps N] [--clip]
// KIND: sgd, momentum, nesterov, adam, adamw. --clip: the program itself shrinks some gradients.
#include <nccl.h>

#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "include/deja.hpp"
#include "tests/e2e/apps/replay/check.h"

namespace {

constexpr size_t kSize = 300'000;
constexpr size_t kBuckets = 3;

constexpr double kMomentum = 0.9;
constexpr double kDampening = 0.1;
constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.98;
constexpr double kEpsilon = 1e-8;
constexpr double kDecay = 0.01;

struct Model {
  explicit Model(const std::string& kind) : kind(kind) {
    if (kind != "sgd") registered.push_back(deja::Registered::Tensor("first", first));
    if (adam()) registered.push_back(deja::Registered::Tensor("second", second));
    registered.push_back(deja::Registered::Tensor("weights", weights));
    registered.push_back(deja::Registered::State("updates", updates));
  }
  [[nodiscard]] bool adam() const { return kind == "adam" || kind == "adamw"; }

  std::string kind;
  std::vector<float> weights = std::vector<float>(kSize);
  std::vector<float> first = std::vector<float>(kSize);
  std::vector<float> second = std::vector<float>(kSize);
  uint64_t updates = 0;
  std::vector<deja::Registered> registered;
};

void Say(const Model& model, const std::vector<float>& gradient, double rate, int nranks) {
  deja_update_t update = {};
  update.optimizer = model.kind == "adamw" ? DEJA_ADAMW : model.adam() ? DEJA_ADAM : DEJA_SGD;
  update.dtype = DEJA_FLOAT32;
  update.count = kSize;
  update.parameters = model.weights.data();
  update.first_moment = model.kind == "sgd" ? nullptr : model.first.data();
  update.second_moment = model.adam() ? model.second.data() : nullptr;
  update.gradient = gradient.data();
  update.updates = model.updates;
  update.learning_rate = rate;
  update.beta1 = model.adam() ? kBeta1 : kMomentum;
  update.beta2 = model.adam() ? kBeta2 : kDampening;
  update.epsilon = kEpsilon;
  update.weight_decay = kDecay;
  update.gradient_scale = 1.0 / nranks;
  update.nesterov = model.kind == "nesterov" ? 1 : 0;
  deja_update(&update);
}

// One operation over the whole tensor after the other.
void UpdateByAdam(Model& model, const std::vector<float>& gradient, double rate) {
  const auto updates = static_cast<double>(model.updates);
  const auto step = static_cast<float>(rate / (1 - std::pow(kBeta1, updates)));
  const auto root = static_cast<float>(std::sqrt(1 - std::pow(kBeta2, updates)));
  const auto decay = static_cast<float>(kDecay);
  const bool decoupled = model.kind == "adamw";
  const auto shrink = decoupled ? static_cast<float>(1 - rate * kDecay) : 1.0F;
  const auto add1 = static_cast<float>(1 - kBeta1);
  const auto add2 = static_cast<float>(1 - kBeta2);
  const auto epsilon = static_cast<float>(kEpsilon);
  for (size_t i = 0; i < kSize; ++i) {
    const float g = decoupled ? gradient[i] : std::fma(decay, model.weights[i], gradient[i]);
    model.first[i] = std::fma(add1, g - model.first[i], model.first[i]);
    model.second[i] = std::fma(add2 * g, g, static_cast<float>(kBeta2) * model.second[i]);
    model.weights[i] = model.weights[i] * shrink -
                       step * model.first[i] / (std::sqrt(model.second[i]) / root + epsilon);
  }
}

void UpdateBySgd(Model& model, const std::vector<float>& gradient, float rate) {
  const auto momentum = static_cast<float>(kMomentum);
  const auto add = static_cast<float>(1 - kDampening);
  for (size_t i = 0; i < kSize; ++i) {
    const float g = gradient[i] + static_cast<float>(kDecay) * model.weights[i];
    float direction = g;
    if (model.kind != "sgd") {
      model.first[i] = momentum * model.first[i] + add * g;
      direction = model.kind == "nesterov" ? g + momentum * model.first[i] : model.first[i];
    }
    model.weights[i] = std::fma(-rate, direction, model.weights[i]);
  }
}

int FromEnvironment(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

uint64_t HashOf(const std::vector<float>& values) {
  uint64_t hash = 1469598103934665603ull;
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "adamw";
  int steps = 24;
  bool clip = false;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--clip") == 0) clip = true;
    if (std::strcmp(argv[i], "--steps") == 0 && i + 1 < argc) steps = std::atoi(argv[++i]);
  }
  const int rank = FromEnvironment("RANK", 0);
  const int nranks = FromEnvironment("WORLD_SIZE", 1);
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, nranks, id, rank));

  Model model(kind);
  std::mt19937 generator(17);
  std::normal_distribution<float> normal;
  for (float& weight : model.weights) weight = normal(generator) * 0.1F;
  generator.seed(static_cast<uint32_t>(rank));
  model.registered.push_back(deja::Registered::Engine("generator", generator));
  std::vector<float> gradient(kSize);
  for (int step = 0; step < steps; ++step) {
    step = static_cast<int>(deja_step(static_cast<uint64_t>(step)));
    std::normal_distribution<float> noise;
    for (size_t i = 0; i < kSize; ++i)
      gradient[i] = noise(generator) * 0.01F + model.weights[i] * 0.001F;
    for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
      float* const begin = gradient.data() + bucket * kSize / kBuckets;
      CHECK(ncclAllReduce(begin, begin, kSize / kBuckets, ncclFloat, ncclSum, comm, nullptr));
    }
    ++model.updates;
    const double rate = 1e-3 * (1 - static_cast<double>(step) / steps);
    Say(model, gradient, rate, nranks);
    for (float& g : gradient) g *= 1.0F / static_cast<float>(nranks);
    if (clip)
      for (size_t i = 0; i < kSize; i += 100) gradient[i] *= 0.5F;
    if (model.adam())
      UpdateByAdam(model, gradient, rate);
    else
      UpdateBySgd(model, gradient, static_cast<float>(rate));
  }
  std::printf("rank %d weights %016" PRIx64 "\n", rank, HashOf(model.weights));
  CHECK(ncclCommDestroy(comm));
  return 0;
}
