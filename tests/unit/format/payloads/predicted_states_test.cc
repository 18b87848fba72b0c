#include "format/payloads/predicted_states.h"

#include <gtest/gtest.h>

#include <memory>

namespace deja::format {
namespace {

constexpr size_t kStateElements = 100;
constexpr size_t kStateBytes = kStateElements * sizeof(float);

std::shared_ptr<const PredictedState> State(float value) {
  PredictedState state;
  state.values.parameters.assign(kStateElements, value);
  return std::make_shared<const PredictedState>(std::move(state));
}

TEST(PredictedStates, ArePlacesOfTheirSegment) {
  PredictedStates states;
  states.Keep(1, 64, State(1));
  states.Keep(2, 64, State(2));
  EXPECT_EQ(states.Find(1, 64)->values.parameters[0], 1);
  EXPECT_EQ(states.Find(2, 64)->values.parameters[0], 2);
  EXPECT_EQ(states.Find(1, 65), nullptr);
}

TEST(PredictedStates, TheOneThatWasAskedForLongestAgoGoes) {
  PredictedStates states(2 * kStateBytes);
  states.Keep(0, 1, State(1));
  states.Keep(0, 2, State(2));
  EXPECT_NE(states.Find(0, 1), nullptr);
  states.Keep(0, 3, State(3));
  EXPECT_NE(states.Find(0, 1), nullptr);
  EXPECT_EQ(states.Find(0, 2), nullptr);
  EXPECT_NE(states.Find(0, 3), nullptr);
}

TEST(PredictedStates, OneThatIsTooLargeIsNotKeptAndNoneGoesForIt) {
  PredictedStates states(kStateBytes);
  states.Keep(0, 1, State(1));
  PredictedState large;
  large.values.first.resize(kStateElements + 1);
  states.Keep(0, 2, std::make_shared<const PredictedState>(std::move(large)));
  EXPECT_EQ(states.Find(0, 2), nullptr);
  EXPECT_NE(states.Find(0, 1), nullptr);
}

TEST(PredictedStates, OneThatIsInUseStaysWhole) {
  PredictedStates states(kStateBytes);
  states.Keep(0, 1, State(1));
  const std::shared_ptr<const PredictedState> used = states.Find(0, 1);
  states.Keep(0, 2, State(2));
  EXPECT_EQ(states.Find(0, 1), nullptr);
  EXPECT_EQ(used->values.parameters.back(), 1);
}

}  // namespace
}  // namespace deja::format
