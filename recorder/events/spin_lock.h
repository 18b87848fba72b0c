// preload's SpinLock and Hold, for the recorder.
#ifndef DEJA_RECORDER_SPIN_LOCK_H_
#define DEJA_RECORDER_SPIN_LOCK_H_

#include "preload/spin_lock.h"

namespace deja::recorder {

using preload::Hold;
using preload::SpinLock;

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_SPIN_LOCK_H_
