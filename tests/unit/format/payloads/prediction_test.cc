#include "format/payloads/prediction.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "format/pack/optimizer_updates.h"
#include "format/wire/messages.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace deja::format {
namespace {

constexpr size_t kElements = 1003;
constexpr uint32_t kSgd = static_cast<uint32_t>(PredictionMethod::kSgd);
constexpr uint32_t kAdam = static_cast<uint32_t>(PredictionMethod::kAdam);

std::vector<float> Noise(uint32_t seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(kElements);
  for (float& value : values) value = normal(random) * scale;
  return values;
}

OptimizerState SomeState() {
  OptimizerState state{Noise(1, 0.1F), Noise(2, 1e-3F), Noise(3, 1e-6F)};
  for (float& value : state.second) value = std::fabs(value);
  return state;
}

OptimizerUpdate Adam(uint64_t updates) {
  OptimizerUpdate said;
  said.optimizer = 2;
  said.updates = updates;
  said.learning_rate = 1e-3;
  said.beta1 = 0.9;
  said.beta2 = 0.999;
  said.epsilon = 1e-8;
  said.gradient_scale = 1;
  return said;
}

void ExpectSame(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << i;
}

// How far two results of different orders may be apart.
void ExpectNear(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5 * std::fabs(a[i]) + 1e-9) << i;
}

TEST(Prediction, AdamAsAProgramWritesIt) {
  OptimizerState state = SomeState();
  OptimizerState expected = state;
  const UpdateRules rules{kAdam, 0, 0, 0, 0};
  for (uint64_t t = 1; t <= 4; ++t) {
    const std::vector<float> gradient = Noise(static_cast<uint32_t>(10 + t), 0.01F);
    // Each operation is rounded: nothing can be fused.
    const volatile float b1 = 0.9F, b2 = 0.999F, rate = 1e-3F, eps = 1e-8F;
    const volatile float a = 1 / (1 - std::pow(0.9F, static_cast<float>(t)));
    const volatile float b = 1 / (1 - std::pow(0.999F, static_cast<float>(t)));
    for (size_t i = 0; i < kElements; ++i) {
      const volatile float kept = b1 * expected.first[i], c1 = 1 - b1, added = c1 * gradient[i];
      expected.first[i] = kept + added;
      const volatile float kept2 = b2 * expected.second[i], c2 = 1 - b2, scaled = c2 * gradient[i];
      const volatile float added2 = scaled * gradient[i];
      expected.second[i] = kept2 + added2;
      const volatile float step = rate * expected.first[i], corrected = step * a;
      const volatile float square = expected.second[i] * b, root = std::sqrt(square);
      const volatile float divisor = root + eps, change = corrected / divisor;
      expected.parameters[i] = expected.parameters[i] - change;
    }
    std::vector<float> scratch = gradient;
    ApplyUpdate(rules, NumbersOf(Adam(t), rules, true), scratch, state);
  }
  ExpectSame(state.first, expected.first);
  ExpectSame(state.second, expected.second);
  ExpectSame(state.parameters, expected.parameters);
}

// All orders are of the same optimizer.
TEST(Prediction, EveryOrderOfAdamIsAdam) {
  OptimizerUpdate said = Adam(7);
  said.weight_decay = 0.01;
  for (const uint32_t optimizer : {2U, 3U}) {
    said.optimizer = optimizer;
    OptimizerState reference;
    for (uint32_t rule = 0; rule < kAdamParameterRules; ++rule) {
      for (const bool in_single : {true, false}) {
        const UpdateRules rules{kAdam, rule % kGradientRules, rule % kFirstRules,
                                rule % kSecondRules, rule};
        OptimizerState state = SomeState();
        std::vector<float> gradient = Noise(5, 0.01F);
        ApplyUpdate(rules, NumbersOf(said, rules, in_single), gradient, state);
        if (reference.first.empty()) reference = state;
        ExpectNear(state.first, reference.first);
        ExpectNear(state.second, reference.second);
        ExpectNear(state.parameters, reference.parameters);
      }
    }
  }
}

TEST(Prediction, SgdWithAndWithoutMomentum) {
  OptimizerUpdate said;
  said.optimizer = 1;
  said.learning_rate = 0.1;
  said.beta1 = 0.9;
  said.beta2 = 0.5;  // dampening
  said.weight_decay = 0.01;
  said.gradient_scale = 0.25;
  const std::vector<float> gradient = Noise(5, 0.01F);
  for (uint32_t rule = 0; rule < kSgdParameterRules; ++rule) {
    const UpdateRules rules{kSgd, rule % kGradientRules, rule % 3, 0, rule};
    OptimizerState state = SomeState();
    state.second.clear();
    const OptimizerState before = state;
    std::vector<float> scratch = gradient;
    ApplyUpdate(rules, NumbersOf(said, rules, true), scratch, state);
    for (size_t i = 0; i < kElements; ++i) {
      const double g = 0.25 * gradient[i] + 0.01 * before.parameters[i];
      const double m = 0.9 * before.first[i] + 0.5 * g;
      const double direction = rule < 2 ? m : rule < 5 ? g + 0.9 * m : g;
      ASSERT_NEAR(state.first[i], m, 1e-6 * std::fabs(m) + 1e-9);
      const double p = before.parameters[i] - 0.1 * direction;
      ASSERT_NEAR(state.parameters[i], p, 1e-6 * std::fabs(p) + 1e-9) << rule;
    }
  }
}

TEST(Prediction, PartsThatAreNotThereAreLeftAlone) {
  const UpdateRules rules{kAdam, 0, 0, 0, 0};
  OptimizerState all = SomeState();
  OptimizerState moments = all;
  moments.parameters.clear();
  for (OptimizerState* state : {&all, &moments}) {
    std::vector<float> gradient = Noise(5, 0.01F);
    ApplyUpdate(rules, NumbersOf(Adam(3), rules, true), gradient, *state);
  }
  EXPECT_TRUE(moments.parameters.empty());
  ExpectSame(moments.first, all.first);
  ExpectSame(moments.second, all.second);
}

TEST(Prediction, NanHasTheSameBitsEverywhere) {
  const UpdateRules rules{kAdam, 0, 0, 0, 0};
  OptimizerState state = SomeState();
  std::vector<float> gradient = Noise(5, 0.01F);
  gradient[3] = -std::numeric_limits<float>::quiet_NaN();
  gradient[4] = std::bit_cast<float>(uint32_t{0x7fc12345});
  state.second[5] = -1;
  ApplyUpdate(rules, NumbersOf(Adam(3), rules, true), gradient, state);
  for (const size_t i : {3, 4, 5})
    EXPECT_EQ(std::bit_cast<uint32_t>(state.parameters[i]), 0x7fc00000U) << i;
}

#if defined(__x86_64__)
TEST(Prediction, TheProgramsModeDoesNotMatter) {
  const UpdateRules rules{kAdam, 0, 0, 0, 0};
  OptimizerState state = SomeState();
  for (float& value : state.second) value *= 1e-36F;  // becomes denormal
  OptimizerState other = state;
  const std::vector<float> gradient = Noise(5, 1e-20F);
  const std::vector<float> numbers = NumbersOf(Adam(3), rules, true);
  std::vector<float> scratch = gradient;
  ApplyUpdate(rules, numbers, scratch, state);
  scratch = gradient;
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0xe040);  // flushes denormals, rounds to zero
  ApplyUpdate(rules, numbers, scratch, other);
  _mm_setcsr(saved);
  ExpectSame(state.second, other.second);
  ExpectSame(state.parameters, other.parameters);
}
#endif

Prediction Sound() {
  Prediction prediction;
  prediction.size = 4000;
  prediction.rules.method = kAdam;
  prediction.parameters = 100;
  prediction.first_moment = 200;
  prediction.second_moment = 300;
  PredictedUpdate update;
  update.numbers.assign(kAdamNumbers, std::bit_cast<uint32_t>(0.0F));
  update.chunks = {400, 500};
  update.offsets = {0, 8};
  update.sizes = {3000, 1000};
  prediction.updates.push_back(update);
  return prediction;
}

TEST(Prediction, AMalformedPredictionIsRefused) {
  EXPECT_EQ(WhatIsWrong(Sound()), "");
  const auto refused = [](auto change) {
    Prediction prediction = Sound();
    change(prediction);
    return !WhatIsWrong(prediction).empty();
  };
  EXPECT_TRUE(refused([](Prediction& p) { p.size = 0; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.size = 4001; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.size = 2 << 20; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.rules.method = 0; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.rules.method = 3; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.rules.gradient = kGradientRules; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.rules.first = kFirstRules; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.rules.second = kSecondRules; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.rules.parameters = kAdamParameterRules; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.parameters = p.first_moment = p.second_moment = 0; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.second_moment = 0; })) << "parameters need it";
  EXPECT_TRUE(refused([](Prediction& p) { p.rules.method = kSgd; })) << "has no second moment";
  EXPECT_TRUE(refused([](Prediction& p) { p.updates.clear(); }));
  EXPECT_TRUE(refused([](Prediction& p) { p.updates[0].numbers.pop_back(); }));
  EXPECT_TRUE(refused([](Prediction& p) { p.updates[0].numbers.push_back(0); }));
  EXPECT_TRUE(refused([](Prediction& p) { p.updates[0].chunks.pop_back(); }));
  EXPECT_TRUE(refused([](Prediction& p) { p.updates[0].offsets.push_back(0); }));
  EXPECT_TRUE(refused([](Prediction& p) { p.updates[0].sizes[1] = 999; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.updates[0].sizes[1] = 1001; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.updates[0].sizes[0] = ~uint64_t{0} - 999; }));
  EXPECT_TRUE(refused([](Prediction& p) { p.updates[0].offsets[0] = ~uint64_t{0}; }));
  EXPECT_TRUE(refused([](Prediction& p) {
    p.parameters = 0;
    p.updates[0].numbers[kGradientDecay] = std::bit_cast<uint32_t>(0.1F);
  })) << "gradients need parameters";
}

}  // namespace
}  // namespace deja::format
