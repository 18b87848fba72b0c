// Which locks of the program are taken in their recorded order, and the counters that say whose
// turn it is.
//
// A process keeps an order from its second thread on; a forked child has one thread again. Python's
// interpreter lock is left out, and so is what a thread takes while it holds it, semaphores aside.
// Where an interpreter changes threads is a matter of time.
//
// Any thread; no allocation; LocksAreOrdered costs a load.
#ifndef DEJA_PRELOAD_MEET_LOCK_ORDER_H_
#define DEJA_PRELOAD_MEET_LOCK_ORDER_H_

#include <atomic>
#include <cstdint>

#include "format/tail/lock_reading.h"

namespace deja::preload {

enum class LockOrder : uint8_t {
  kOff,
  kWanted,  // as soon as there is a second thread
  kKept,
};
extern constinit std::atomic<LockOrder> g_lock_order;

inline bool LocksAreOrdered() {
  return g_lock_order.load(std::memory_order_relaxed) == LockOrder::kKept;
}

// The engine, before the program's first thread makes another one, and in a forked child.
void WantLockOrder(bool wanted);
// In a process that has made no thread yet: an order is wanted, too. A process that has made some
// goes on as it is: what they have taken has no turns.
void AskForLockOrder();
// The program is about to make a thread. All counters begin at zero with the first of them.
void OnMoreThreads();
// While locks are ordered: Python is in this process.
bool HasPython();
// False: the lock is left out.
bool IsOrderedLock(const void* lock, format::LockUse use);

// Only while locks are ordered.
extern constinit std::atomic<uint64_t>* g_lock_turns;
inline std::atomic<uint64_t>& TurnsOf(uint16_t counter) {
  return g_lock_turns[counter];
}
// The order of the lock at this address. Locks that share one have one order.
inline uint16_t LockCounter(const void* lock) {
  return static_cast<uint16_t>(reinterpret_cast<uintptr_t>(lock) * 0x9e3779b97f4a7c15u >> 48);
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_LOCK_ORDER_H_
