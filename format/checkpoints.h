// The checkpoints of a rank: from which steps a replay can start.
//
// Values read from a trace; nothing in them is to be trusted but that the strings and numbers are
// there. Any thread.
#ifndef DEJA_FORMAT_CHECKPOINTS_H_
#define DEJA_FORMAT_CHECKPOINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/messages.h"
#include "format/rank_reader.h"

namespace deja::format {

struct CheckpointItem {
  std::string name;
  Tensor tensor;
  std::vector<uint64_t> shape;
  bool opaque = false;
};

struct RecordedCheckpoint {
  uint64_t number = 0;
  uint64_t step = 0;
  uint64_t bytes = 0;
  uint32_t threads_made = 0;
  uint32_t processes_made = 0;
  std::vector<std::pair<uint32_t, uint64_t>> files;  // descriptor and position
  std::vector<CheckpointItem> items;
  EventHead at;            // of the Checkpoint event
  std::string incomplete;  // why a replay cannot start here; empty: it can

  [[nodiscard]] bool complete() const { return incomplete.empty(); }
  // The event comes after the checkpoint. Events of other threads are compared by time: what the
  // program registers is at rest while it is saved.
  [[nodiscard]] bool IsBehind(uint32_t thread, uint64_t seq, uint64_t time_ns) const {
    return thread == at.thread ? seq > at.seq : time_ns > at.time_ns;
  }
};

// In their order. Those whose process died before they were whole are not among them.
std::vector<RecordedCheckpoint> ReadCheckpoints(const RankReader& reader);

}  // namespace deja::format

#endif  // DEJA_FORMAT_CHECKPOINTS_H_
