// CheckpointPredictor: writes an optimizer's state at a checkpoint as its difference to a
// prediction. The prediction follows from the state of the checkpoint before and the recorded
// gradients.
//
// For a copy of a rank's folder (ReducedCopy), whose payloads come in the order in which they were
// recorded. What a payload is predicted from must be in the copy's file already. The caller writes
// what cannot be predicted, or gains nothing by it. A prediction is computed by what reads it again
// (ChunkReader), from the copy itself.
//
// Borrows the reader. One thread at a time. Memory: the updates of the recording, what
// PredictedStates keeps, a few chunks.
#ifndef DEJA_FORMAT_PACK_CHECKPOINT_PREDICTION_H_
#define DEJA_FORMAT_PACK_CHECKPOINT_PREDICTION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/result.h"
#include "format/pack/optimizer_updates.h"
#include "format/payloads/chunk_reader.h"
#include "format/payloads/predicted_states.h"
#include "format/reader/rank_reader.h"
#include "format/trace/payload_uses.h"
#include "format/wire/frame_writer.h"
#include "format/wire/messages.h"

namespace deja::format {

class CheckpointPredictor {
 public:
  // `path`: the payload file of the copy.
  CheckpointPredictor(const RankReader& reader, std::string path);

  // Whether Copy may have something to do with it.
  [[nodiscard]] bool Knows(const Hash128& hash) const { return parts_.count(hash) != 0; }
  // A payload that is wholly in the copy's file, in chunks of kPayloadChunkBytes.
  void Note(const PayloadInfo& info) { written_[info.hash] = info; }

  // Writes the payload to `out`, which appends to the copy's file. Nothing: it is not predicted,
  // and nothing has been written that counts. Errors are of writing.
  Result<std::optional<PayloadInfo>> Copy(const Hash128& hash, uint64_t total_size,
                                          FrameWriter& out);

  // Totals of all that was written.
  [[nodiscard]] const Predicted& totals() const { return totals_; }

 private:
  // In which order the program computes, and how its numbers were.
  struct Order {
    UpdateRules rules;
    bool in_single = true;
    double scale = 1;  // of gradients, besides what is said

    [[nodiscard]] std::vector<float> NumbersOf(const OptimizerUpdate& said) const;
  };
  struct Found {
    Order order;
    double share = 0;  // of its sample that was exact
  };
  struct Change {
    StateChange recorded;
    std::optional<Order> order;
    std::map<uint64_t, uint64_t> frames;  // of predictions in the file, by offset of their chunks
  };
  struct Place {
    size_t change = 0;
    StatePart part = StatePart::kParameters;
  };
  struct Sample;

  // What `recorded` says of chunks; nothing if what it needs is not in the file.
  [[nodiscard]] std::optional<Prediction> Predict(const Change& change, uint64_t offset,
                                                  uint64_t size) const;
  [[nodiscard]] bool AddGradient(const RecordedUpdate& update, uint64_t offset, uint64_t size,
                                 PredictedUpdate& predicted) const;
  // Finds the order in which the program computes, from a part of what came of it.
  [[nodiscard]] std::optional<Order> FindOrder(const Change& change);
  [[nodiscard]] bool ReadSample(const Change& change, Sample& sample) const;
  static Found BestOrder(const Change& change, const Sample& sample, double scale);
  // Writes a chunk, predicted if that makes it smaller.
  Result<uint64_t> WriteChunk(const Place& place, std::span<const std::byte> bytes,
                              PayloadChunk& chunk, FrameWriter& out);
  // Makes `chunk` a difference to what it should be; false if it gains nothing.
  Result<bool> MakePredicted(const Place& place, std::span<const std::byte> bytes,
                             size_t whole_bytes, PayloadChunk& chunk, FrameWriter& out);

  const RankReader& reader_;
  const std::string path_;
  std::vector<Change> changes_;
  std::unordered_map<Hash128, Place, HashOfHash> parts_;
  std::unordered_map<Hash128, PayloadInfo, HashOfHash> written_;
  mutable PredictedStates states_;  // of the copy's file
  std::optional<Found> last_found_;
  std::vector<std::byte> whole_;
  std::vector<std::byte> planes_;
  std::vector<std::byte> difference_;
  Predicted totals_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PACK_CHECKPOINT_PREDICTION_H_
