// InputState: which inputs have been recorded already, where once is enough.
//
// A part of Recording, made with it, never destroyed; synchronises itself.
#ifndef DEJA_RECORDER_INPUTS_INPUT_STATE_H_
#define DEJA_RECORDER_INPUTS_INPUT_STATE_H_

#include "recorder/core/recording.h"
#include "recorder/inputs/seen_inputs.h"

namespace deja::recorder {

struct InputState {
  static constexpr RecordingPart kPart = RecordingPart::kInputs;

  SeenInputs seen;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_INPUTS_INPUT_STATE_H_
