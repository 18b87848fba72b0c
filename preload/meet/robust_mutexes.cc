#include "preload/meet/robust_mutexes.h"

#include <climits>
#include <cstddef>
#include <cstring>

namespace deja::preload {
namespace {

static_assert(offsetof(pthread_mutex_t, __data.__list) -
                  offsetof(pthread_mutex_t, __data.__spins) ==
              sizeof(uint32_t));
static_assert(PipeTable::kMutexes <= 1 << 16);

}  // namespace

SharedMutexes::Found RobustMutexes::Find(const pthread_mutex_t* mutex, PipeTable& table) {
  MutexSlot* slot = table.Mutex(WordOf(mutex) & ~kMarkMask);
  if (slot == nullptr) return {};
  return {slot->key.load(std::memory_order_relaxed), &slot->order};
}

bool RobustMutexes::Mark(pthread_mutex_t* mutex, uint64_t key, PipeTable& table) {
  const uint32_t number = table.AddMutex(key);
  if (number == PipeTable::kMutexes) return false;
  const uint32_t word = kMark | number;
  std::memcpy(&mutex->__data.__spins, &word, sizeof word);
  return true;
}

void RobustMutexes::SetOwnerDied(pthread_mutex_t* mutex) {
  // PTHREAD_MUTEX_INCONSISTENT of glibc. The thread has it in its list already;
  // pthread_mutex_unlock and pthread_mutex_consistent look at this alone.
  mutex->__data.__owner = INT_MAX;
  mutex->__data.__count = 1;
}

}  // namespace deja::preload
