// StepRecorder: writes down what the program says about itself through include/deja.h.
//
// One per process, never destroyed. Any thread; but for OnStep, under the guard. errno is kept.
#ifndef DEJA_RECORDER_STEPS_STEP_RECORDER_H_
#define DEJA_RECORDER_STEPS_STEP_RECORDER_H_

#include <cstdint>
#include <string_view>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/step_calls.h"
#include "recorder/core/recorder.h"

namespace deja::recorder {

class StepRecorder : public preload::StepCalls {
 public:
  explicit StepRecorder(Recorder& recorder) : recorder_(recorder) {}

  uint64_t OnStep(uint64_t step) override;
  void OnCheckpointWanted() override;
  void OnNote(std::string_view text) override;
  void OnSnapshot(const preload::SnapshotCall& call) override;
  void OnUpdate(const format::OptimizerUpdate& update) override;

 private:
  Recorder& recorder_;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_STEPS_STEP_RECORDER_H_
