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
#include <span>
#include <string>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"
#include "format/payloads/prediction.h"
#include "format/wire/messages.h"

namespace deja::format {

// Decodes the chunk in a frame of type kPayloadChunk and checks its fields against the limits;
// `chunk.data` points into `frame`.
Status ParseChunk(std::span<const std::byte> frame, PayloadChunk& chunk);

class ChunkReader {
 public:
  explicit ChunkReader(const ReadFile& file) : file_(file) {}

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
  // The part of the state at the chunk `from`, if it is not 0.
  Status ReadPart(const Prediction& prediction, uint64_t at, uint64_t from,
                  std::vector<float>& part);

  const ReadFile& file_;
  // Bytes decoded so far, all of which may be needed for one chunk.
  std::map<uint64_t, OptimizerState> predicted_;  // by place of the prediction
  uint32_t predictions_ = 0;
  uint64_t gradient_pieces_ = 0;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_CHUNK_READER_H_
