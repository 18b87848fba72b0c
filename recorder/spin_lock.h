// Hold: a preload::SpinLock for the time of a scope. Not for signal handlers.
#ifndef DEJA_RECORDER_SPIN_LOCK_H_
#define DEJA_RECORDER_SPIN_LOCK_H_

#include "preload/spin_lock.h"

namespace deja::recorder {

using preload::SpinLock;

class Hold {
 public:
  explicit Hold(SpinLock& lock) : lock_(lock) { lock_.Lock(); }
  ~Hold() { lock_.Unlock(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_SPIN_LOCK_H_
