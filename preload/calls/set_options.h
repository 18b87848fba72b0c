// SetOptions: options of one socket that the program has set.
//
// The kernel's answer to getsockopt is an input that is asked for once a question. The same
// question after the program has set the option is another question.
//
// A recording and a replay each have one for each socket; both see the same calls, so they tell the
// same questions apart. Any thread.
#ifndef DEJA_PRELOAD_CALLS_SET_OPTIONS_H_
#define DEJA_PRELOAD_CALLS_SET_OPTIONS_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/runtime/spin_lock.h"

namespace deja::preload {

class SetOptions {
 public:
  // The program has asked for it, whether it got it or not. The first 16 options are known, and the
  // first 16 bytes of a value count.
  void Set(int level, int name, const void* value, socklen_t size);
  // The key of the question's Input event (docs/FORMAT.md).
  uint64_t KeyOf(int level, int name);
  // As a new socket has it. No other thread has the socket.
  void Clear() { count_ = 0; }

 private:
  struct One {
    uint64_t option;
    uint64_t key;
  };

  SpinLock lock_;
  size_t count_ = 0;
  std::array<One, 16> set_;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_SET_OPTIONS_H_
