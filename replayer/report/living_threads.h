// How many threads the process has that still run code of it.
#ifndef DEJA_REPLAYER_REPORT_LIVING_THREADS_H_
#define DEJA_REPLAYER_REPORT_LIVING_THREADS_H_

#include <cstdint>

namespace deja::replayer {

// The number of threads in /proc/self/task that are not exiting; 0: /proc cannot be read. A joined
// thread stays listed until the kernel has removed it, which takes milliseconds on a busy machine.
// Any thread; no allocation.
uint64_t LivingThreads();

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_REPORT_LIVING_THREADS_H_
