// Where SIGCHLD came in the calling thread's stream (preload/engine/child_signal.h).
#ifndef DEJA_RECORDER_CORE_CHILD_SIGNAL_NOTE_H_
#define DEJA_RECORDER_CORE_CHILD_SIGNAL_NOTE_H_

#include "recorder/core/recorder.h"

namespace deja::recorder {

// Writes it down if it has come. Within the guard.
void WriteChildSignal(Recorder& recorder);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_CORE_CHILD_SIGNAL_NOTE_H_
