#include "preload/meet/shared_semaphores.h"

#include "preload/engine/engine.h"

namespace deja::preload {
namespace {

constexpr size_t kCounterAt = 64;
constexpr size_t kSlots = 4096;
constexpr uintptr_t kFree = 0;
constexpr uintptr_t kTaken = 1;    // is being filled in
constexpr uintptr_t kRemoved = 2;  // was an entry: what comes after it may be looked for

struct Slot {
  std::atomic<uintptr_t> address{kFree};
  std::atomic<uint32_t> opened{0};
  uint64_t key = 0;
};

constinit Slot g_slots[kSlots];
static_assert(sizeof(sem_t) <= kCounterAt);

// A sem_t as glibc has it since 2.21: the value and the waiters, whether processes share it
// (FUTEX_SHARED, a bit for futex calls), and room.
struct SemaphoreInMemory {
  uint64_t value;
  uint32_t shared;
  uint32_t unused;
  uint64_t key;  // ours, from here on
  uint32_t order;
};
constexpr uint32_t kShared = 128;
constexpr uint64_t kMark = uint64_t{0xdea5} << 48;
constexpr uint64_t kMarkMask = uint64_t{0xffff} << 48;
static_assert(sizeof(SemaphoreInMemory) <= sizeof(sem_t));
static_assert(kCounterAt + sizeof(std::atomic<uint32_t>) <= SharedSemaphores::kBytes);

size_t Home(uintptr_t address) {
  return (address >> 12) * 0x9e3779b97f4a7c15u >> 52;
}

Slot* FindSlot(uintptr_t address) {
  for (size_t i = 0, at = Home(address); i < kSlots; ++i, at = (at + 1) % kSlots) {
    const uintptr_t there = g_slots[at].address.load(std::memory_order_acquire);
    if (there == address) return &g_slots[at];
    if (there == kFree) return nullptr;
  }
  return nullptr;
}

// FNV-1a; never 0.
uint64_t KeyOf(const char* name) {
  while (*name == '/') ++name;
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  return hash | 1;
}

}  // namespace

SharedSemaphores::Found SharedSemaphores::Look(uintptr_t address) {
  const Slot* slot = FindSlot(address);
  if (slot == nullptr) return {};
  return {slot->key, reinterpret_cast<std::atomic<uint32_t>*>(address + kCounterAt)};
}

SharedSemaphores::Found SharedSemaphores::LookInside(const sem_t* semaphore) {
  const auto* inside = reinterpret_cast<const SemaphoreInMemory*>(semaphore);
  if (inside->shared != kShared || (inside->key & kMarkMask) != kMark) return {};
  const auto at = reinterpret_cast<uintptr_t>(&inside->order);
  return {inside->key, reinterpret_cast<std::atomic<uint32_t>*>(at)};
}

void SharedSemaphores::Mark(sem_t* semaphore, uint64_t key) {
  auto* inside = reinterpret_cast<SemaphoreInMemory*>(semaphore);
  if (inside->shared != kShared) return;  // another C library: it may use all of it
  inside->order = 0;
  inside->key = kMark | (key & ~kMarkMask);
}

void SharedSemaphores::Add(sem_t* semaphore, const char* name) {
  const auto address = reinterpret_cast<uintptr_t>(semaphore);
  if (IsBorrowedMemory()) return;
  if (Slot* known = FindSlot(address)) {
    known->opened.fetch_add(1);
    return;
  }
  for (size_t i = 0, at = Home(address); i < kSlots; ++i, at = (at + 1) % kSlots) {
    Slot& slot = g_slots[at];
    uintptr_t there = slot.address.load(std::memory_order_relaxed);
    if ((there != kFree && there != kRemoved) ||
        !slot.address.compare_exchange_strong(there, kTaken))
      continue;
    slot.key = KeyOf(name);
    slot.opened.store(1);
    slot.address.store(address, std::memory_order_release);
    return;
  }
}

void SharedSemaphores::Remove(sem_t* semaphore) {
  if (IsBorrowedMemory()) return;
  Slot* slot = FindSlot(reinterpret_cast<uintptr_t>(semaphore));
  if (slot != nullptr && slot->opened.fetch_sub(1) == 1) slot->address.store(kRemoved);
}

}  // namespace deja::preload
