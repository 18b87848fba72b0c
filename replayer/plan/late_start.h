// LateStart: where a replay that starts at a checkpoint goes on, in every order that a recording
// has.
//
// The program runs from its beginning to its first deja_step, and is served what was recorded.
// There its state is restored, and all that is served jumps to the position after the checkpoint:
// each thread's queues, the communicators' operations, clocks, connections.
//
// Built with the plan, afterwards constant. Any thread.
#ifndef DEJA_REPLAYER_PLAN_LATE_START_H_
#define DEJA_REPLAYER_PLAN_LATE_START_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/reader/checkpoints.h"

namespace deja::replayer {

struct RecordedThread;

// How much of a thread's queues comes before the checkpoint.
struct ThreadPosition {
  uint32_t calls = 0;
  uint32_t snapshots = 0;
  uint32_t ends = 0;
  uint64_t strict_events = 0;
  uint64_t entropy_events = 0;
  std::map<uint32_t, uint32_t> by_api;
  std::map<uint32_t, uint32_t> entropy;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> by_key;
};

class LateStart {
 public:
  explicit LateStart(const format::RecordedCheckpoint& checkpoint) : checkpoint_(checkpoint) {}

  [[nodiscard]] const format::RecordedCheckpoint& checkpoint() const { return checkpoint_; }
  [[nodiscard]] const ThreadPosition& PositionOf(uint32_t thread) const {
    return positions_[thread];
  }
  // The last operation of a communicator that was entered before.
  [[nodiscard]] uint64_t OperationsOf(uint32_t comm) const {
    auto it = operations_.find(comm);
    return it == operations_.end() ? 0 : it->second;
  }
  [[nodiscard]] const std::unordered_map<uint32_t, uint64_t>& operations() const {
    return operations_;
  }
  // The thread, a position in the plan's, has events after the checkpoint.
  [[nodiscard]] bool GoesOn(uint32_t thread) const { return passed_[thread]; }

  // When the checkpoint's thread reached its first step.
  [[nodiscard]] uint64_t first_step_ns() const { return first_step_ns_; }

  // While the plan is built: an event of `thread` comes from after the checkpoint, and so do all
  // that follow on it.
  void Pass(uint32_t thread, std::span<const RecordedThread> threads);
  void AddOperation(uint32_t comm, uint64_t seq);
  void AddStep(const format::EventHead& at) {
    if (at.thread == checkpoint_.at.thread) first_step_ns_ = std::min(first_step_ns_, at.time_ns);
  }
  void Finish(std::span<const RecordedThread> threads);

 private:
  const format::RecordedCheckpoint checkpoint_;
  uint64_t first_step_ns_ = ~uint64_t{0};
  std::vector<ThreadPosition> positions_;
  std::vector<bool> passed_;
  std::unordered_map<uint32_t, uint64_t> operations_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_LATE_START_H_
