#include "recorder/core/child_signal_note.h"

#include <csignal>

#include "api/libc_table.h"
#include "preload/engine/child_signal.h"

namespace deja::recorder {

void WriteChildSignal(Recorder& recorder) {
  if (!preload::TakeChildSignal()) return;
  Recording* rec = recorder.Active();
  if (rec == nullptr) return;
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::ksigaction);
  input.key = SIGCHLD;
  rec->writer.Write(input);
  rec->RelieveStaging();
}

}  // namespace deja::recorder
