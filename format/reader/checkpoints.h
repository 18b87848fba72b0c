// The checkpoints of a rank: from which steps a replay can start.
//
// Values read from a trace; nothing in them is to be trusted but that the strings and numbers are
// there. Any thread.
#ifndef DEJA_FORMAT_READER_CHECKPOINTS_H_
#define DEJA_FORMAT_READER_CHECKPOINTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/reader/rank_reader.h"
#include "format/wire/messages.h"

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

// In their order. Those whose process died before they were whole are not among them. Reads
// whatever the recording has of them.
std::vector<RecordedCheckpoint> ReadCheckpoints(const RankReader& reader);

// The same from the last one backwards, as far as the caller goes. So the part that a replay from a
// late checkpoint reads does not grow with the recording. One thread; borrows the reader.
class CheckpointsBackwards {
 public:
  // Looks at the recording's first `batches` batches.
  CheckpointsBackwards(const RankReader& reader, size_t batches)
      : reader_(reader), left_(std::min(batches, reader.batches().size())) {}

  // The one before; nothing: there is none.
  std::optional<RecordedCheckpoint> Next();

 private:
  struct Found {
    RecordedCheckpoint checkpoint;
    Checkpoint event;
    bool done = false;  // no more of its items can come
  };
  void ReadBatch(size_t batch);

  const RankReader& reader_;
  size_t left_;               // batches that have not been read
  std::vector<Found> found_;  // in their order; the last one is handed out next
};

// How many batches there are up to the one in which a step after `step` begins, that one included;
// nothing: steps do not go up, so that a checkpoint of an earlier step may be anywhere.
std::optional<size_t> BatchesUpToStep(const RankReader& reader, uint64_t step);

// Checkpoint `number`; nothing: it is not there.
std::optional<RecordedCheckpoint> FindCheckpoint(const RankReader& reader, uint64_t number);

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_CHECKPOINTS_H_
