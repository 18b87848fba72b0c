// Memory for the recorder's tables, straight from the kernel: a hook may be running inside the
// program's own allocator, so nothing here calls malloc.
//
// MapZeroed returns zeroed pages or null; the tables below keep what they have when it does.
#ifndef DEJA_RECORDER_EVENTS_MAPPED_MEMORY_H_
#define DEJA_RECORDER_EVENTS_MAPPED_MEMORY_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "common/runtime/own_mapping.h"
#include "common/runtime/spin_lock.h"

namespace deja::recorder {

inline void* MapZeroed(size_t bytes) {
  void* p = MapOwn(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  return p == MAP_FAILED ? nullptr : p;
}

// A map from non-zero 64-bit keys (handles, addresses) to 32-bit numbers. Any thread.
class KeyMap {
 public:
  static constexpr uint32_t kMissing = 0xffffffffu;

  uint32_t Find(uint64_t key) {
    Hold hold(lock_);
    Slot* slot = Lookup(key);
    return slot != nullptr && slot->key == key ? slot->value : kMissing;
  }
  // Replaces what was there. False if there is no memory.
  bool Set(uint64_t key, uint32_t value) {
    Hold hold(lock_);
    return SetLocked(key, value);
  }
  // Finds the key, or gives it the value `next` and then increments `next`; `is_new` says which.
  uint32_t FindOrAdd(uint64_t key, uint32_t& next, bool& is_new) {
    Hold hold(lock_);
    Slot* slot = Lookup(key);
    is_new = slot == nullptr || slot->key != key;
    if (!is_new) return slot->value;
    if (!SetLocked(key, next)) return kMissing;
    return next++;
  }
  void Erase(uint64_t key) {
    Hold hold(lock_);
    Slot* slot = Lookup(key);
    if (slot == nullptr || slot->key != key) return;
    // Moves back what was displaced by the erased entry, so that no tombstones pile up.
    size_t hole = static_cast<size_t>(slot - slots_);
    for (size_t at = Next(hole); slots_[at].key != 0; at = Next(at)) {
      size_t home = Home(slots_[at].key);
      bool between = hole <= at ? hole < home && home <= at : hole < home || home <= at;
      if (between) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = Slot{};
    --used_;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t value = 0;
  };
  [[nodiscard]] size_t Home(uint64_t key) const {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15u) >> 32) & (capacity_ - 1);
  }
  [[nodiscard]] size_t Next(size_t at) const { return (at + 1) & (capacity_ - 1); }
  // The slot of `key`, or the free one where it belongs; null while there is no table.
  Slot* Lookup(uint64_t key) {
    if (capacity_ == 0) return nullptr;
    size_t at = Home(key);
    while (slots_[at].key != 0 && slots_[at].key != key) at = Next(at);
    return &slots_[at];
  }
  bool SetLocked(uint64_t key, uint32_t value) {
    if (used_ * 2 >= capacity_ && !Grow()) return false;
    Slot* slot = Lookup(key);
    if (slot->key == 0) ++used_;
    *slot = {key, value};
    return true;
  }
  bool Grow() {
    size_t old_capacity = capacity_;
    Slot* old_slots = slots_;
    size_t bigger = old_capacity == 0 ? 256 : old_capacity * 2;
    auto* slots = static_cast<Slot*>(MapZeroed(bigger * sizeof(Slot)));
    if (slots == nullptr) return used_ + 1 < capacity_;
    slots_ = slots;
    capacity_ = bigger;
    for (size_t i = 0; i < old_capacity; ++i)
      if (old_slots[i].key != 0) *Lookup(old_slots[i].key) = old_slots[i];
    if (old_slots != nullptr) munmap(old_slots, old_capacity * sizeof(Slot));
    return true;
  }

  SpinLock lock_;
  Slot* slots_ = nullptr;
  size_t capacity_ = 0;
  size_t used_ = 0;
};

// An append-only array whose elements never move. Elements are zeroed memory on which T's default
// constructor runs. Any thread.
template <typename T, size_t kPerChunk = 64, size_t kChunks = 4096>
class StableArray {
 public:
  // Index of a new element, or kMissing when there is no memory.
  static constexpr uint32_t kMissing = 0xffffffffu;
  uint32_t Add() {
    Hold hold(lock_);
    size_t chunk = size_ / kPerChunk;
    if (chunk >= kChunks) return kMissing;
    if (chunks_[chunk] == nullptr) {
      auto* memory = static_cast<T*>(MapZeroed(sizeof(T) * kPerChunk));
      if (memory == nullptr) return kMissing;
      for (size_t i = 0; i < kPerChunk; ++i) new (&memory[i]) T();
      chunks_[chunk] = memory;
    }
    return static_cast<uint32_t>(size_++);
  }
  T& operator[](uint32_t i) { return chunks_[i / kPerChunk][i % kPerChunk]; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  SpinLock lock_;
  T* chunks_[kChunks] = {};
  size_t size_ = 0;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_MAPPED_MEMORY_H_
