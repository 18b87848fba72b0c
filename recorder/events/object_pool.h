// ObjectPool: objects that descriptors lead to. A descriptor may be in use while it is closed. So
// the memory of an object is never given back, and holds an object of the same type for good.
//
// T has a default constructor and a member `next_free_`, and is the pool's friend. Any thread; a
// forked child calls ResetInChild first. Static storage.
#ifndef DEJA_RECORDER_EVENTS_OBJECT_POOL_H_
#define DEJA_RECORDER_EVENTS_OBJECT_POOL_H_

#include <cstddef>
#include <new>

#include "common/runtime/spin_lock.h"
#include "recorder/events/mapped_memory.h"

namespace deja::recorder {

template <typename T>
class ObjectPool {
 public:
  // Null: there is no room.
  T* Take() {
    Hold hold(lock_);
    if (T* object = free_) {
      free_ = object->next_free_;
      return object;
    }
    const size_t chunk = used_ / kPerChunk;
    if (chunk >= kChunks) return nullptr;
    if (chunks_[chunk] == nullptr)
      chunks_[chunk] = static_cast<T*>(MapZeroed(sizeof(T) * kPerChunk));
    if (chunks_[chunk] == nullptr) return nullptr;
    return new (&chunks_[chunk][used_++ % kPerChunk]) T;
  }
  void GiveBack(T& object) {
    Hold hold(lock_);
    object.next_free_ = free_;
    free_ = &object;
  }
  // All that were ever taken.
  template <typename Function>
  void ForEach(Function function) {
    for (size_t i = 0; i < used_; ++i) function(chunks_[i / kPerChunk][i % kPerChunk]);
  }

 private:
  static constexpr size_t kPerChunk = 64;
  static constexpr size_t kChunks = 1 << 10;

  SpinLock lock_;
  T* free_ = nullptr;
  T* chunks_[kChunks] = {};
  size_t used_ = 0;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_OBJECT_POOL_H_
