// Prediction: how chunks of an optimizer's state follow from those of an earlier checkpoint and
// from gradients that are in the file (docs/FORMAT.md, "Predictions").
//
// Plain values as they are on disk, and the arithmetic, with the same bits on every machine. It is
// IEEE single precision, rounded to nearest; no operations are fused but where a rule says so. Pure
// functions, any thread, whatever its floating-point mode.
#ifndef DEJA_FORMAT_PAYLOADS_PREDICTION_H_
#define DEJA_FORMAT_PAYLOADS_PREDICTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace deja::format {

// Limits for what a chunk builds on: the number of predictions one after the other, and of pieces
// of gradients in all.
inline constexpr uint32_t kMaxPredictions = 15;
inline constexpr uint64_t kMaxGradientPieces = 1024;

enum class PredictionMethod : uint32_t { kSgd = 1, kAdam = 2 };

// PayloadChunk.state.
enum class StatePart : uint32_t { kParameters = 1, kFirstMoment = 2, kSecondMoment = 3 };

// In which order an update computes. A number is of PredictedUpdate.numbers.
struct UpdateRules {
  uint32_t method = 0;
  uint32_t gradient = 0;
  uint32_t first = 0;
  uint32_t second = 0;
  uint32_t parameters = 0;
  friend bool operator==(const UpdateRules&, const UpdateRules&) = default;
};
inline constexpr uint32_t kGradientRules = 2;
inline constexpr uint32_t kFirstRules = 5;
inline constexpr uint32_t kSecondRules = 6;
inline constexpr uint32_t kAdamParameterRules = 7;
inline constexpr uint32_t kSgdParameterRules = 7;

// Places in PredictedUpdate.numbers, for both methods.
enum UpdateNumber : size_t {
  kGradientScale,
  kGradientDecay,  // so much of a parameter is added to its gradient
  kKeepFirst,
  kAddFirst,
  kRate,
  kShrink,  // parameters are multiplied by this first
  kSgdNumbers,
  kKeepSecond = kSgdNumbers,
  kAddSecond,
  kFirstCorrection,
  kSecondCorrection,
  kEpsilon,
  kAdamNumbers,
};

struct PredictedUpdate {
  std::vector<uint32_t> numbers;  // the bits of floats
  // Where the gradient lies: bytes of these chunks, one after the other.
  std::vector<uint64_t> chunks;
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> sizes;
};

struct Prediction {
  uint64_t offset = 0;  // of the chunks in their payloads
  uint64_t size = 0;
  UpdateRules rules;
  // Chunks of the state that it begins with; 0: there is none.
  uint64_t parameters = 0;
  uint64_t first_moment = 0;
  uint64_t second_moment = 0;
  std::vector<PredictedUpdate> updates;
};

template <typename V, typename M>
requires std::is_same_v<std::remove_const_t<M>, PredictedUpdate>
constexpr void Visit(V&& v, M& m) {
  v(1, m.numbers);
  v(2, m.chunks);
  v(3, m.offsets);
  v(4, m.sizes);
}

template <typename V, typename M>
requires std::is_same_v<std::remove_const_t<M>, Prediction>
constexpr void Visit(V&& v, M& m) {
  v(1, m.offset);
  v(2, m.size);
  v(3, m.rules.method);
  v(4, m.rules.first);
  v(5, m.rules.second);
  v(6, m.rules.parameters);
  v(7, m.parameters);
  v(8, m.first_moment);
  v(9, m.second_moment);
  v(10, m.updates);
  v(11, m.rules.gradient);
}

// Ranges of the tensors; empty where there is none. All others have the same size.
struct OptimizerState {
  std::vector<float> parameters;
  std::vector<float> first;
  std::vector<float> second;

  // The values of `part`; null for a part that is no tensor.
  [[nodiscard]] const std::vector<float>* Part(StatePart part) const;
};

// What is wrong with it, whatever is in the file; empty if nothing.
std::string WhatIsWrong(const Prediction& prediction);

// Whether the parts of the state that there are follow from one another.
bool IsEnough(const UpdateRules& rules, std::span<const float> numbers, bool parameters, bool first,
              bool second);

// One update. `numbers` has kSgdNumbers or kAdamNumbers elements, `gradient` as many as the state;
// it is changed. IsEnough holds. Parts that are not there are not computed.
void ApplyUpdate(const UpdateRules& rules, std::span<const float> numbers,
                 std::span<float> gradient, OptimizerState& state);

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_PREDICTION_H_
