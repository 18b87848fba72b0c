// ClockNs: a clock of the system, in nanoseconds.
//
// Any thread; async-signal-safe. A clock that the kernel does not have reads 0.
#ifndef DEJA_COMMON_RUNTIME_CLOCK_NS_H_
#define DEJA_COMMON_RUNTIME_CLOCK_NS_H_

#include <time.h>

#include <cstdint>

namespace deja {

inline uint64_t ClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_CLOCK_NS_H_
