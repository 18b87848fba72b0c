// InputReplayer: answers what the program asks the C library and the kernel from the recording:
// inputs, clocks, deadlines.
//
// One per process, made with the engine, never destroyed. Any thread, within the guard unless its
// interface says otherwise. errno afterwards is the recording's.
#ifndef DEJA_REPLAYER_INPUTS_INPUT_REPLAYER_H_
#define DEJA_REPLAYER_INPUTS_INPUT_REPLAYER_H_

#include <cstdint>

#include "preload/calls/clock_calls.h"
#include "preload/calls/input_calls.h"
#include "replayer/core/replayer.h"

namespace deja::replayer {

class InputReplayer : public preload::InputCalls, public preload::ClockCalls {
 public:
  explicit InputReplayer(Replayer& replayer) : replayer_(replayer) {}

  void OnInput(preload::InputCall& call) override;
  int64_t OnClock(format::ClockSource source, int64_t live_ns) override;
  void OnUnseenReading(format::ClockSource source, preload::UnseenReading made_for) override;
  bool TellsPythonLocks() override;
  int64_t DeadlineOffsetNs(int clock, int64_t deadline_ns) override;

 private:
  void ServeUnrecorded(preload::InputCall& call);

  Replayer& replayer_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_INPUTS_INPUT_REPLAYER_H_
