// preload's SpinLock and Hold, for the recorder.
#ifndef DEJA_RECORDER_EVENTS_SPIN_LOCK_H_
#define DEJA_RECORDER_EVENTS_SPIN_LOCK_H_

#include "common/runtime/spin_lock.h"

namespace deja::recorder {

using Hold;
using SpinLock;

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_SPIN_LOCK_H_
