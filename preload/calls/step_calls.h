// StepCalls: what an engine does with what the program says about itself (include/deja.h).
//
// Any thread; but for OnStep, with the guard held. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_STEP_CALLS_H_
#define DEJA_PRELOAD_CALLS_STEP_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "format/wire/messages.h"

namespace deja::preload {

// A snapshot by deja_tensor / deja_state.
struct SnapshotCall {
  std::string_view name;
  const void* data = nullptr;
  size_t bytes = 0;
  uint32_t dtype = 0;  // ncclDataType_t, or format::kRawBytes
  std::span<const int64_t> shape;
  bool opaque = false;
};

class StepCalls {
 public:
  // A step begins. Returns the step that the program goes on with. Called without the guard: it may
  // save and load the program's state, which is code of the program.
  virtual uint64_t OnStep(uint64_t step) = 0;
  // The next step takes a checkpoint.
  virtual void OnCheckpointWanted() {}
  virtual void OnNote(std::string_view text) = 0;
  virtual void OnSnapshot(const SnapshotCall& call) = 0;
  // The program's optimizer makes an update. A replay has nothing to do with it.
  virtual void OnUpdate(const format::OptimizerUpdate& update) { (void)update; }

 protected:
  ~StepCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_STEP_CALLS_H_
