// RobustMutexes: robust mutexes that processes of a rank share, and where their order is.
//
// The C library keeps the list of what a thread holds in the mutexes themselves. So a robust one
// has no room for a name and a counter as others have (shared_mutexes.h). It has 4 bytes, in which
// adaptive mutexes count spins. A mark and a number lie there: that of a place in the table of the
// rank's processes (pipe_table.h).
//
// Any thread; lock-free; no allocation.
#ifndef DEJA_PRELOAD_MEET_ROBUST_MUTEXES_H_
#define DEJA_PRELOAD_MEET_ROBUST_MUTEXES_H_

#include <pthread.h>

#include <cstdint>
#include <cstring>

#include "preload/meet/pipe_table.h"
#include "preload/meet/shared_mutexes.h"

namespace deja::preload {

class RobustMutexes {
 public:
  static bool IsMarked(const pthread_mutex_t* mutex) {
    return (mutex->__data.__kind & kBoth) == kBoth && (WordOf(mutex) & kMarkMask) == kMark;
  }
  // Finds the order of a marked one; its key is 0 if another table has it.
  static SharedMutexes::Found Find(const pthread_mutex_t* mutex, PipeTable& table);
  // pthread_mutex_init has made it, robust and for several processes; `key`: what it is called in
  // every run. False: the table has no room for it.
  static bool Mark(pthread_mutex_t* mutex, uint64_t key, PipeTable& table);

  // The calling thread has it, and shall find that its owner has died: as if the C library had
  // returned EOWNERDEAD.
  static void SetOwnerDied(pthread_mutex_t* mutex);

 private:
  static constexpr int kBoth = 128 | 16;  // as glibc has it: of processes, robust
  static constexpr uint32_t kMark = uint32_t{0xdea9} << 16;
  static constexpr uint32_t kMarkMask = uint32_t{0xffff} << 16;

  static uint32_t WordOf(const pthread_mutex_t* mutex) {
    uint32_t word = 0;
    std::memcpy(&word, &mutex->__data.__spins, sizeof word);
    return word;
  }
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_ROBUST_MUTEXES_H_
