#include "format/tail/lock_reading.h"

namespace deja::format {

const char* LockUseName(LockUse use) {
  switch (use) {
    case LockUse::kMutex:
      return "mutex";
    case LockUse::kRead:
      return "read lock";
    case LockUse::kWrite:
      return "write lock";
    case LockUse::kSemaphore:
      return "semaphore";
    case LockUse::kOnce:
      return "once";
    case LockUse::kBarrier:
      return "barrier";
    case LockUse::kCondition:
      return "condition wait";
    case LockUse::kSpin:
      return "spin lock";
  }
  return "lock";
}

}  // namespace deja::format
