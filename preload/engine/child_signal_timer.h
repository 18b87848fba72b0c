// SIGCHLD that waits for a call of the program's (child_signal.h) is sent again if there is none
// for a while.
//
// The process's first thread alone; async-signal-safe.
#ifndef DEJA_PRELOAD_ENGINE_CHILD_SIGNAL_TIMER_H_
#define DEJA_PRELOAD_ENGINE_CHILD_SIGNAL_TIMER_H_

#include <cstdint>

namespace deja::preload {

// The signal comes again, with the cause kSentAgain, in `delay_ms`, less than a second. False:
// there is no timer for that.
bool StartChildSignalTimer(uint32_t delay_ms);
void StopChildSignalTimer();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_CHILD_SIGNAL_TIMER_H_
