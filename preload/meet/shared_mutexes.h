// SharedMutexes: mutexes that processes of a rank share (PTHREAD_PROCESS_SHARED), and a counter in
// each.
//
// As with semaphores in memory (shared_semaphores.h): the C library uses the last 16 bytes of a
// pthread_mutex_t for robust mutexes only. In others, a mark, a name that is the same in every run,
// and the counter lie there, wherever a process has the memory. Robust ones have them elsewhere
// (robust_mutexes.h).
//
// Find costs a load and a comparison for other mutexes. Any thread; lock-free; no allocation.
#ifndef DEJA_PRELOAD_MEET_SHARED_MUTEXES_H_
#define DEJA_PRELOAD_MEET_SHARED_MUTEXES_H_

#include <pthread.h>

#include "preload/meet/shared_semaphores.h"

namespace deja::preload {

class SharedMutexes {
 public:
  using Found = SharedSemaphores::Found;

  static Found Find(const pthread_mutex_t* mutex) {
    // As glibc has it; a robust mutex of one process has the first bit, too.
    constexpr int kShared = 128;
    constexpr int kRobust = 16;
    if ((mutex->__data.__kind & (kShared | kRobust)) != kShared) [[likely]]
      return {};
    return LookInside(mutex);
  }

  // pthread_mutex_init has made it for several processes, and it is not robust; `key`: what it is
  // called in every run.
  static void Mark(pthread_mutex_t* mutex, uint64_t key);

 private:
  static Found LookInside(const pthread_mutex_t* mutex);
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_SHARED_MUTEXES_H_
