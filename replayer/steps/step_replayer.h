// StepReplayer: what the program says about itself: its steps, at which a replay stops or jumps to
// a checkpoint, notes and snapshots.
//
// One per process, made with the engine, never destroyed. Any thread; but for OnStep, within the
// guard.
#ifndef DEJA_REPLAYER_STEPS_STEP_REPLAYER_H_
#define DEJA_REPLAYER_STEPS_STEP_REPLAYER_H_

#include <cstdint>
#include <string_view>

#include "preload/calls/step_calls.h"
#include "replayer/core/replayer.h"

namespace deja::replayer {

class StepReplayer : public preload::StepCalls {
 public:
  explicit StepReplayer(Replayer& replayer) : replayer_(replayer) {}

  uint64_t OnStep(uint64_t step) override;
  void OnNote(std::string_view text) override;
  void OnSnapshot(const preload::SnapshotCall& call) override;

 private:
  // Restores the checkpoint. Without the guard.
  void StartLate();

  Replayer& replayer_;
  bool at_first_step_ = false;  // or past it
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_STEPS_STEP_REPLAYER_H_
