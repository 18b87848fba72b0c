// InputRecorder: writes down what the program gets from the C library and the kernel: inputs,
// clocks, and the ends of its children.
//
// One per process, never destroyed. Any thread, under the guard. errno is left as the real call
// left it.
#ifndef DEJA_RECORDER_INPUTS_INPUT_RECORDER_H_
#define DEJA_RECORDER_INPUTS_INPUT_RECORDER_H_

#include <cstdint>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/clock_calls.h"
#include "preload/calls/input_calls.h"
#include "preload/calls/process_calls.h"
#include "recorder/core/recorder.h"
#include "recorder/inputs/vain_waits.h"

namespace deja::recorder {

class InputRecorder : public preload::InputCalls,
                      public preload::ClockCalls,
                      public preload::ProcessCalls {
 public:
  explicit InputRecorder(Recorder& recorder) : recorder_(recorder) {}

  void OnInput(preload::InputCall& call) override;
  int64_t OnClock(format::ClockSource source, int64_t live_ns) override;
  void OnUnseenReading(format::ClockSource source, preload::UnseenReading made_for) override;
  bool MayKill(int pid, int signal) override;
  int OnChildMade(uint32_t number, int pid, const preload::NextProgram& program) override;
  void BeforeWait(preload::WaitCall& call) override;
  void AfterWait(preload::WaitCall& call) override;
  void AfterEndedWait() override;
  void AfterVainWait(preload::WaitCall& call) override;
  bool OnChildSignal(preload::ChildSignalCause cause) override;
  bool BeforeCallAtPlace() override;
  void AfterFileCall() override;
  bool EndsSleep() override;

 private:
  void WriteLook(uint64_t key, int64_t result, int error = 0);
  void WriteEndedWait();

  Recorder& recorder_;
  VainWaits vain_waits_;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_INPUTS_INPUT_RECORDER_H_
