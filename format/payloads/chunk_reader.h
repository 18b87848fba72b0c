// ChunkReader: the chunks of one payload file, decoded with what they build on.
//
// What a chunk builds on stands before it in its file, so that there is no way around in a circle.
// Borrows the file. One thread at a time; small, made where it is needed. The file is not to be
// trusted: how deep and how wide a chunk may build on others is limited.
#ifndef DEJA_FORMAT_PAYLOADS_CHUNK_READER_H_
#define DEJA_FORMAT_PAYLOADS_CHUNK_READER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"
#include "format/payloads/predicted_states.h"
#include "format/payloads/prediction.h"
#include "format/wire/messages.h"

namespace deja::format {

// Decodes the chunk in a frame of type kPayloadChunk and checks its fields against the limits;
// `chunk.data` points into `frame`.
Status ParseChunk(std::span<const std::byte> frame, PayloadChunk& chunk);

class ChunkReader {
 public:
  explicit ChunkReader(const ReadFile& file) : file_(file) {}
  // `states` keeps what predictions of this file, a segment's, have given; borrowed.
  ChunkReader(const ReadFile& file, PredictedStates* states, uint32_t segment)
      : file_(file), states_(states), segment_(segment) {}

  // The chunk in the frame at `at`; its data points into `frame`.
  Status Read(uint64_t at, std::vector<std::byte>& frame, PayloadChunk& chunk) const;
  // Its bytes; `at` is where its frame begins. `out` has its size.
  Status Decode(const PayloadChunk& chunk, uint64_t at, std::span<std::byte> out);
  // The bytes of the chunk in the frame at `at`.
  Status ReadBytes(uint64_t at, std::vector<std::byte>& bytes);
  // The gradient of an update of the prediction at `at`, as many elements as it says.
  Status ReadGradient(const PredictedUpdate& update, uint64_t at, std::span<float> gradient);
  // The state after the updates of `prediction`, whose frame is or will be at `at`.
  Status Predict(const Prediction& prediction, uint64_t at, OptimizerState& state);

  // For messages.
  [[nodiscard]] std::string PlaceOf(uint64_t at) const;

 private:
  [[nodiscard]] tl::unexpected<Error> Bad(uint64_t at, const std::string& what) const;
  Status AddDifferences(const PayloadChunk& chunk, uint64_t at, std::span<std::byte> out) const;
  Status AddPrediction(const PayloadChunk& chunk, uint64_t at, std::span<std::byte> out);
  Status ReadPrediction(uint64_t at, Prediction& prediction) const;
  // The state of the prediction in the frame at `at`.
  Status FindState(uint64_t at, std::shared_ptr<const PredictedState>& state);
  Status Compute(const Prediction& prediction, uint64_t at, PredictedState& state);
  // A prediction counts once, also when its state was kept. Fails when there are too many.
  Status Count(uint64_t at, uint64_t gradient_pieces);
  // The part of `state` at the chunk `from`, if it is not 0.
  Status ReadPart(const Prediction& prediction, uint64_t at, uint64_t from,
                  std::vector<float>& part, PredictedState& state);

  const ReadFile& file_;
  PredictedStates* const states_ = nullptr;
  const uint32_t segment_ = 0;
  // Those that what was decoded builds on, all of which may be needed for one chunk.
  std::map<uint64_t, std::shared_ptr<const PredictedState>> predicted_;  // by place
  std::set<uint64_t> counted_;                                           // their places
  uint64_t gradient_pieces_ = 0;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_CHUNK_READER_H_
