// SharedSemaphores: semaphores that processes of a rank share, and a counter beside each. They have
// names (sem_open), or sem_init has made them for several processes.
//
// A named semaphore has a page of its own, of which it needs the first bytes. The counter lies
// after it, in every process that has the semaphore open, so nothing else has to be shared, named
// or removed. A semaphore of sem_init lies in the program's memory. The C library uses 16 of the 32
// bytes of a sem_t; the counter lies in the others, after a mark by which every process knows it
// again. While recording it counts acquisitions; in a replay it says whose turn it is.
//
// Find costs two comparisons for a semaphore that is no such. Any thread; lock-free; no allocation;
// a forked child inherits what its parent knows.
#ifndef DEJA_PRELOAD_MEET_SHARED_SEMAPHORES_H_
#define DEJA_PRELOAD_MEET_SHARED_SEMAPHORES_H_

#include <semaphore.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace deja::preload {

class SharedSemaphores {
 public:
  // The page of a semaphore, with what lies beside it.
  static constexpr size_t kBytes = 128;

  struct Found {
    uint64_t key = 0;  // the same in every run; 0: it is no such semaphore
    std::atomic<uint32_t>* order = nullptr;
  };

  static Found Find(const sem_t* semaphore) {
    constexpr uintptr_t kPageMask = 4095;
    const auto address = reinterpret_cast<uintptr_t>(semaphore);
    if ((address & kPageMask) == 0)
      if (const Found named = Look(address); named.key != 0) return named;
    return LookInside(semaphore);
  }

  // The program has opened `semaphore` by `name` / closes it, once for each time.
  static void Add(sem_t* semaphore, const char* name);
  static void Remove(sem_t* semaphore);
  // sem_init has made it for several processes; `key`: what it is called in every run.
  static void Mark(sem_t* semaphore, uint64_t key);

  // Whether the calling thread has taken such a semaphore since it last gave one back. What it does
  // now is in the order in which that is taken.
  static bool GuardsThisThread() { return t_guarded_; }
  static void SetGuarded(bool guarded) { t_guarded_ = guarded; }

 private:
  static inline constinit thread_local bool t_guarded_ = false;
  static Found Look(uintptr_t address);
  static Found LookInside(const sem_t* semaphore);
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_SHARED_SEMAPHORES_H_
