// StepState: the checkpoints that the program has taken.
//
// A part of Recording, made with it, never destroyed; any thread.
#ifndef DEJA_RECORDER_STEPS_STEP_STATE_H_
#define DEJA_RECORDER_STEPS_STEP_STATE_H_

#include "recorder/core/recording.h"
#include "recorder/steps/checkpoints.h"

namespace deja::recorder {

struct StepState {
  static constexpr RecordingPart kPart = RecordingPart::kSteps;

  CheckpointState checkpoints;
};

inline StepState& StepsOf(Recording& recording) {
  return recording.Of<StepState>();
}

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_STEPS_STEP_STATE_H_
