// Children: that they were made, and how they ended, as far as the program has seen it.
#include <sys/wait.h>

#include "recorder/inputs/input_recorder.h"

namespace deja::recorder {

int InputRecorder::OnChildMade(uint32_t number, int pid) {
  if (Recording* rec = recorder_.Active())
    rec->writer.Write(format::Child{number, static_cast<uint32_t>(pid), false, 0, 0});
  return pid;
}

void InputRecorder::AfterWait(preload::WaitCall& call) {
  const bool by_signal = WIFSIGNALED(call.status);
  if ((!by_signal && !WIFEXITED(call.status)) || (call.options & WNOWAIT) != 0) return;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  format::Child child;
  child.pid = static_cast<uint32_t>(call.result);
  child.ended = true;
  child.exit_code = by_signal ? -1 : WEXITSTATUS(call.status);
  child.signal = by_signal ? static_cast<uint32_t>(WTERMSIG(call.status)) : 0;
  rec->writer.Write(child);
}

}  // namespace deja::recorder
