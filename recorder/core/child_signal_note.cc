#include "recorder/core/child_signal_note.h"

#include <csignal>

#include "api/libc_table.h"
#include "preload/engine/child_signal_timer.h"

namespace deja::recorder {

namespace {

void Note(bool exact) {
  preload::ChildSignal& signal = preload::t_child_signal;
  // The first one that the recording does not have yet has made the interpreter look.
  if (!signal.came) {
    signal.place = preload::PlaceOfChildSignal(signal.file_calls, exact);
    signal.place_sleeps = signal.sleeps;
  }
  signal.came = true;
}

}  // namespace

bool TakeOrDelayChildSignal(preload::ChildSignalCause cause) {
  preload::ChildSignal& signal = preload::t_child_signal;
  const bool is_again = cause == preload::ChildSignalCause::kSentAgain;
  if (is_again && !signal.waits) return false;
  if (cause == preload::ChildSignalCause::kOther) {
    if (signal.waits) return false;
    constexpr uint32_t kDelayMs = 100;
    signal.waits = preload::StartChildSignalTimer(kDelayMs);
    if (signal.waits) return false;
  } else if (signal.waits) {
    signal.waits = false;
    preload::StopChildSignalTimer();
  }
  Note(false);
  return true;
}

void GiveChildSignalAtFileCall() {
  if (!preload::t_child_signal.waits) return;
  preload::StopChildSignalTimer();
  preload::t_child_signal.waits = false;  // one that comes before this is the same
  Note(true);
  preload::RunChildSignalHandler();
}

bool GiveChildSignalAtSleep() {
  if (!TakeWaitingChildSignal()) return false;
  Note(false);
  preload::RunChildSignalHandler();
  return true;
}

bool TakeWaitingChildSignal() {
  if (!preload::t_child_signal.waits) return false;
  preload::StopChildSignalTimer();
  preload::t_child_signal.waits = false;
  return true;
}

bool GiveChildSignalAtWait() {
  if (!TakeWaitingChildSignal()) return false;
  preload::RunChildSignalHandler();
  return true;
}

void WriteChildSignal(Recorder& recorder) {
  if (!preload::TakeChildSignal()) return;
  Recording* rec = recorder.Active();
  if (rec == nullptr) return;
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::ksigaction);
  input.key = SIGCHLD;
  input.result = preload::t_child_signal.place;
  input.error = preload::t_child_signal.place_sleeps;
  rec->writer.Write(input);
  rec->RelieveStaging();
}

}  // namespace deja::recorder
