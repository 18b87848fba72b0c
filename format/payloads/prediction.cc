// Compiled with -ffp-contract=off: what is not an std::fma here must not become one.
#include "format/payloads/prediction.h"

#include <bit>
#include <cmath>
#include <limits>

#include "common/runtime/float_mode.h"
#include "format/tensor/tensor_codec.h"

namespace deja::format {
namespace {

// The bits of a result that is not a number differ from processor to processor.
float Canonical(float value) {
  return value == value ? value : std::bit_cast<float>(uint32_t{0x7fc00000});
}

// values[i] = compute(values[i], i).
template <typename Compute>
void ForAll(std::vector<float>& values, Compute compute) {
  float* const data = values.data();
  const size_t size = values.size();
  for (size_t i = 0; i < size; ++i) data[i] = Canonical(compute(data[i], i));
}

void ScaleGradient(uint32_t rule, std::span<const float> numbers, std::span<float> gradient,
                   const std::vector<float>& parameters) {
  const float scale = numbers[kGradientScale];
  const float decay = numbers[kGradientDecay];
  if (scale != 1)
    for (float& value : gradient) value *= scale;
  if (decay == 0) return;
  for (size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = rule == 0 ? gradient[i] + decay * parameters[i]
                            : std::fma(decay, parameters[i], gradient[i]);
  }
}

void UpdateFirst(uint32_t rule, std::span<const float> numbers, std::span<const float> gradient,
                 std::vector<float>& first) {
  const float keep = numbers[kKeepFirst];
  const float add = numbers[kAddFirst];
  const float* const g = gradient.data();
  switch (rule) {
    case 0:
      return ForAll(first, [=](float m, size_t i) { return keep * m + add * g[i]; });
    case 1:
      return ForAll(first, [=](float m, size_t i) { return std::fma(add, g[i], keep * m); });
    case 2:
      return ForAll(first, [=](float m, size_t i) { return std::fma(keep, m, add * g[i]); });
    case 3:
      return ForAll(first, [=](float m, size_t i) { return m + add * (g[i] - m); });
    default:
      return ForAll(first, [=](float m, size_t i) { return std::fma(add, g[i] - m, m); });
  }
}

void UpdateSecond(uint32_t rule, std::span<const float> numbers, std::span<const float> gradient,
                  std::vector<float>& second) {
  const float keep = numbers[kKeepSecond];
  const float add = numbers[kAddSecond];
  const float* const g = gradient.data();
  switch (rule) {
    case 0:
      return ForAll(second, [=](float v, size_t i) { return keep * v + add * g[i] * g[i]; });
    case 1:
      return ForAll(second, [=](float v, size_t i) { return keep * v + add * (g[i] * g[i]); });
    case 2:
      return ForAll(second,
                    [=](float v, size_t i) { return std::fma(add * g[i], g[i], keep * v); });
    case 3:
      return ForAll(second,
                    [=](float v, size_t i) { return std::fma(add, g[i] * g[i], keep * v); });
    case 4:
      return ForAll(second,
                    [=](float v, size_t i) { return std::fma(keep, v, add * g[i] * g[i]); });
    default:
      return ForAll(second,
                    [=](float v, size_t i) { return std::fma(keep, v, add * (g[i] * g[i])); });
  }
}

void UpdateByAdam(uint32_t rule, std::span<const float> numbers, OptimizerState& state) {
  const float rate = numbers[kRate];
  const float shrink = numbers[kShrink];
  const float a = numbers[kFirstCorrection];
  const float b = numbers[kSecondCorrection];
  const float e = numbers[kEpsilon];
  const float* const m = state.first.data();
  const float* const v = state.second.data();
  switch (rule) {
    case 0:
      return ForAll(state.parameters, [=](float p, size_t i) {
        return p * shrink - rate * m[i] * a / (std::sqrt(v[i] * b) + e);
      });
    case 1:
      return ForAll(state.parameters, [=](float p, size_t i) {
        return p * shrink - rate * (m[i] * a / (std::sqrt(v[i] * b) + e));
      });
    case 2:
      return ForAll(state.parameters, [=](float p, size_t i) {
        return p * shrink - rate * (m[i] / a) / (std::sqrt(v[i] / b) + e);
      });
    case 3:
      return ForAll(state.parameters, [=](float p, size_t i) {
        return p * shrink - rate * (m[i] / a / (std::sqrt(v[i] / b) + e));
      });
    case 4:
      return ForAll(state.parameters, [=](float p, size_t i) {
        return p * shrink - rate * m[i] / (std::sqrt(v[i]) / b + e);
      });
    case 5:
      return ForAll(state.parameters, [=](float p, size_t i) {
        return p * shrink - rate * (m[i] / (std::sqrt(v[i]) / b + e));
      });
    default:
      return ForAll(state.parameters, [=](float p, size_t i) {
        return std::fma(-rate, m[i] / (std::sqrt(v[i]) / b + e), p * shrink);
      });
  }
}

void UpdateBySgd(uint32_t rule, std::span<const float> numbers, std::span<const float> gradient,
                 OptimizerState& state) {
  const float rate = numbers[kRate];
  const float shrink = numbers[kShrink];
  const float keep = numbers[kKeepFirst];
  const float* const m = state.first.data();
  const float* const g = gradient.data();
  switch (rule) {
    case 0:
      return ForAll(state.parameters, [=](float p, size_t i) { return p * shrink - rate * m[i]; });
    case 1:
      return ForAll(state.parameters,
                    [=](float p, size_t i) { return std::fma(-rate, m[i], p * shrink); });
    case 2:
      return ForAll(state.parameters,
                    [=](float p, size_t i) { return p * shrink - rate * (g[i] + keep * m[i]); });
    case 3:
      return ForAll(state.parameters, [=](float p, size_t i) {
        return std::fma(-rate, g[i] + keep * m[i], p * shrink);
      });
    case 4:
      return ForAll(state.parameters, [=](float p, size_t i) {
        return std::fma(-rate, std::fma(keep, m[i], g[i]), p * shrink);
      });
    case 5:
      return ForAll(state.parameters, [=](float p, size_t i) { return p * shrink - rate * g[i]; });
    default:
      return ForAll(state.parameters,
                    [=](float p, size_t i) { return std::fma(-rate, g[i], p * shrink); });
  }
}

bool IsAdam(const UpdateRules& rules) {
  return rules.method == static_cast<uint32_t>(PredictionMethod::kAdam);
}

std::string WhatIsWrong(const Prediction& prediction, const PredictedUpdate& update) {
  const size_t numbers = IsAdam(prediction.rules) ? kAdamNumbers : kSgdNumbers;
  if (update.numbers.size() != numbers) return "an update has too many or too few numbers";
  if (update.chunks.size() != update.offsets.size() || update.chunks.size() != update.sizes.size())
    return "an update's gradient has as many chunks as places and sizes or is none";
  uint64_t left = prediction.size;
  for (size_t i = 0; i < update.chunks.size(); ++i) {
    if (update.sizes[i] > left || update.sizes[i] > kPayloadChunkBytes ||
        update.offsets[i] > kPayloadChunkBytes)
      return "an update has more of a gradient than it needs";
    left -= update.sizes[i];
  }
  if (left != 0) return "an update has less of a gradient than it needs";
  std::vector<float> values(numbers);
  for (size_t i = 0; i < numbers; ++i) values[i] = std::bit_cast<float>(update.numbers[i]);
  if (!IsEnough(prediction.rules, values, prediction.parameters != 0, prediction.first_moment != 0,
                prediction.second_moment != 0))
    return "a part of the state is missing that another one needs";
  return {};
}

}  // namespace

const std::vector<float>* OptimizerState::Part(StatePart part) const {
  switch (part) {
    case StatePart::kParameters:
      return &parameters;
    case StatePart::kFirstMoment:
      return &first;
    case StatePart::kSecondMoment:
      return &second;
  }
  return nullptr;
}

bool IsEnough(const UpdateRules& rules, std::span<const float> numbers, bool parameters, bool first,
              bool second) {
  constexpr uint32_t kSgdByGradient = 5;  // the rules from here on need no moment
  if (numbers[kGradientDecay] != 0 && !parameters) return false;
  if (!IsAdam(rules)) {
    if (second) return false;
    return first || rules.parameters >= kSgdByGradient;
  }
  return parameters ? first && second : first || second;
}

std::string WhatIsWrong(const Prediction& prediction) {
  const UpdateRules& rules = prediction.rules;
  if (prediction.size > kPayloadChunkBytes || prediction.size % sizeof(float) != 0 ||
      prediction.size == 0)
    return "its size is none of a chunk of floats";
  const bool sgd = rules.method == static_cast<uint32_t>(PredictionMethod::kSgd);
  if (!sgd && !IsAdam(rules)) return "an optimizer that this version does not know";
  if (rules.gradient >= kGradientRules || rules.first >= kFirstRules ||
      rules.second >= kSecondRules ||
      rules.parameters >= (sgd ? kSgdParameterRules : kAdamParameterRules))
    return "a rule that this version does not know";
  if (prediction.parameters == 0 && prediction.first_moment == 0 && prediction.second_moment == 0)
    return "it begins with nothing";
  if (prediction.updates.empty()) return "it has no update";
  for (const PredictedUpdate& update : prediction.updates)
    if (std::string wrong = WhatIsWrong(prediction, update); !wrong.empty()) return wrong;
  return {};
}

void ApplyUpdate(const UpdateRules& rules, std::span<const float> numbers,
                 std::span<float> gradient, OptimizerState& state) {
  const DefaultFloatMode mode;
  ScaleGradient(rules.gradient, numbers, gradient, state.parameters);
  UpdateFirst(rules.first, numbers, gradient, state.first);
  if (!IsAdam(rules)) return UpdateBySgd(rules.parameters, numbers, gradient, state);
  UpdateSecond(rules.second, numbers, gradient, state.second);
  UpdateByAdam(rules.parameters, numbers, state);
}

}  // namespace deja::format
