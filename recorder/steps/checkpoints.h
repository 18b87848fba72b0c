// Checkpoints of a rank: when one is due, and its events.
//
// In deja_step, the calling thread hashes each registered object and copies it to the buffer of
// payloads, as it is at that moment. The background thread compresses and writes. The Checkpoint
// event comes last: a process that dies before leaves none.
#ifndef DEJA_RECORDER_STEPS_CHECKPOINTS_H_
#define DEJA_RECORDER_STEPS_CHECKPOINTS_H_

#include <atomic>
#include <cstdint>

namespace deja::recorder {

class Recording;

struct CheckpointState {
  // `every`: --checkpoint-every; `number`: of the step that has begun, from 1.
  bool IsDue(uint64_t every, uint64_t number) {
    if (wanted.load(std::memory_order_relaxed)) return wanted.exchange(false);
    return every != 0 && (number - 1) % every == 0;
  }

  std::atomic<bool> wanted{false};
  std::atomic<uint64_t> taken{0};
  std::atomic<bool> said_nothing_registered{false};
};

// `number`: of the step, from 1. Without the guard: callbacks are code of the program.
void TakeCheckpoint(Recording& rec, uint64_t step, uint64_t number);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_STEPS_CHECKPOINTS_H_
