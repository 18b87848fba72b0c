// Lock readings: what threads of a program did to its locks, as readings of a ClockRun.
//
// An acquisition takes the next number, its turn, of one of 65,536 counters; which one follows from
// the lock's address. What acquires nothing (an attempt that fails) is an outcome. docs/FORMAT.md,
// "Clock runs", is the specification. Pure functions; any thread, signal handlers too.
#ifndef DEJA_FORMAT_TAIL_LOCK_READING_H_
#define DEJA_FORMAT_TAIL_LOCK_READING_H_

#include <cstdint>

#include "format/tail/clock_run.h"

namespace deja::format {

// What a reading was of. On disk: append only.
enum class LockUse : uint8_t {
  kMutex = 0,
  kRead = 1,  // of a reader-writer lock
  kWrite = 2,
  kSemaphore = 3,
  kOnce = 4,       // turn: the thread runs the routine; outcome: another one did
  kBarrier = 5,    // outcome: what the wait returned
  kCondition = 6,  // turn: a wait ends with the mutex; before it, the outcome of one that timed out
  kSpin = 7,
};
inline constexpr uint32_t kLockUses = 8;

inline constexpr uint32_t kLockCounters = 1 << 16;
inline constexpr uint64_t kMaxLockTurn = (uint64_t{1} << 40) - 1;

struct LockReading {
  LockUse use = LockUse::kMutex;
  bool is_turn = false;
  uint16_t counter = 0;
  uint64_t turn = 0;
  int32_t code = 0;  // of an outcome
};

inline bool IsLockReading(ClockSource source) {
  return source == ClockSource::kLockOutcome || source >= ClockSource::kLockTurn;
}

// A counter has one source of several, so that what follows one another in it differs little.
inline ClockSource SourceOfTurn(uint16_t counter) {
  return static_cast<ClockSource>(static_cast<uint32_t>(ClockSource::kLockTurn) +
                                  counter % kLockTurnSources);
}
inline int64_t LockValue(LockUse use, uint16_t counter, uint64_t low) {
  return static_cast<int64_t>(uint64_t{counter} << 44 | static_cast<uint64_t>(use) << 40 | low);
}
inline int64_t ValueOfTurn(LockUse use, uint16_t counter, uint64_t turn) {
  return LockValue(use, counter, turn & kMaxLockTurn);
}
inline int64_t ValueOfOutcome(LockUse use, uint16_t counter, int32_t code) {
  return LockValue(use, counter, static_cast<uint32_t>(code));
}

// False: no reading of a lock, or of a use that a newer version has.
inline bool ReadLock(ClockSource source, int64_t value, LockReading& reading) {
  if (!IsLockReading(source)) return false;
  const auto bits = static_cast<uint64_t>(value);
  const uint64_t use = bits >> 40 & 0xf;
  if (use >= kLockUses) return false;
  reading.use = static_cast<LockUse>(use);
  reading.counter = static_cast<uint16_t>(bits >> 44);
  reading.is_turn = source != ClockSource::kLockOutcome;
  reading.turn = reading.is_turn ? bits & kMaxLockTurn : 0;
  reading.code = reading.is_turn ? 0 : static_cast<int32_t>(bits);
  return true;
}

// "mutex", "condition wait"
const char* LockUseName(LockUse use);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_LOCK_READING_H_
