// SharedRwlocks: reader-writer locks that processes of a rank share (PTHREAD_PROCESS_SHARED), and a
// counter in each.
//
// As with mutexes (shared_mutexes.h), the C library leaves room in a pthread_rwlock_t. A mark, a
// name that is the same in every run, and the counter lie there.
//
// Find costs a load and a comparison for other locks. Any thread; lock-free; no allocation.
#ifndef DEJA_PRELOAD_MEET_SHARED_RWLOCKS_H_
#define DEJA_PRELOAD_MEET_SHARED_RWLOCKS_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "preload/meet/shared_semaphores.h"

namespace deja::preload {

class SharedRwlocks {
 public:
  using Found = SharedSemaphores::Found;

  static Found Find(const pthread_rwlock_t* lock) {
    if (lock->__data.__shared == 0 || (lock->__data.__pad2 & kMarkMask) != kMark) [[likely]]
      return {};
    const auto at = reinterpret_cast<uintptr_t>(&lock->__data.__pad3);
    return {lock->__data.__pad2, reinterpret_cast<std::atomic<uint32_t>*>(at)};
  }

  // pthread_rwlock_init has made it for several processes; `key`: what it is called in every run.
  static void Mark(pthread_rwlock_t* lock, uint64_t key) {
    lock->__data.__pad3 = 0;
    lock->__data.__pad2 = kMark | (key & ~kMarkMask);
  }

 private:
  static constexpr uint64_t kMark = uint64_t{0xdea7} << 48;
  static constexpr uint64_t kMarkMask = uint64_t{0xffff} << 48;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_SHARED_RWLOCKS_H_
