#include "preload/meet/shared_mutexes.h"

#include <atomic>
#include <cstdint>

namespace deja::preload {
namespace {

// What lies where a robust mutex has its place in its owner's list.
struct InsideMutex {
  uint64_t key;
  uint32_t order;
};
static_assert(sizeof(InsideMutex) <= sizeof(pthread_mutex_t{}.__data.__list));

constexpr uint64_t kMutexMark = uint64_t{0xdea6} << 48;
constexpr uint64_t kMutexMarkMask = uint64_t{0xffff} << 48;

}  // namespace

SharedMutexes::Found SharedMutexes::LookInside(const pthread_mutex_t* mutex) {
  const auto* inside = reinterpret_cast<const InsideMutex*>(&mutex->__data.__list);
  if ((inside->key & kMutexMarkMask) != kMutexMark) return {};
  const auto at = reinterpret_cast<uintptr_t>(&inside->order);
  return {inside->key, reinterpret_cast<std::atomic<uint32_t>*>(at)};
}

void SharedMutexes::Mark(pthread_mutex_t* mutex, uint64_t key) {
  auto* inside = reinterpret_cast<InsideMutex*>(&mutex->__data.__list);
  inside->order = 0;
  inside->key = kMutexMark | (key & ~kMutexMarkMask);
}

}  // namespace deja::preload
