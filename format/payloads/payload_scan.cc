#include "format/payloads/payload_scan.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "format/payloads/chunk_reader.h"
#include "format/payloads/prediction.h"
#include "format/tensor/element_difference.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

// Offsets of frames that others may build on, added in their order. There may be very many.
class GoodFrames {
 public:
  void Add(uint64_t offset) { offsets_.push_back(offset); }
  [[nodiscard]] bool Has(uint64_t offset) const {
    return std::binary_search(offsets_.begin(), offsets_.end(), offset);
  }

 private:
  std::deque<uint64_t> offsets_;
};

// Whether what the prediction in this frame builds on is among the `good` chunks.
bool CanBePredicted(std::span<const std::byte> frame, const GoodFrames& good) {
  Prediction prediction;
  if (!Decode(frame, prediction)) return false;
  const auto is_good = [&](uint64_t at) { return good.Has(at); };
  for (const uint64_t at :
       {prediction.parameters, prediction.first_moment, prediction.second_moment})
    if (at != 0 && !is_good(at)) return false;
  return std::all_of(prediction.updates.begin(), prediction.updates.end(),
                     [&](const PredictedUpdate& update) {
                       return std::all_of(update.chunks.begin(), update.chunks.end(), is_good);
                     });
}

}  // namespace

bool ScanPayloadFile(const ReadFile& file, const PayloadScan& scan) {
  FrameReader reader(file);
  if (const Status magic = reader.CheckMagic(); !magic) {
    FrameResult whole;
    whole.outcome = magic.error().code == ErrorCode::kTruncated ? FrameOutcome::kTornTail
                                                                : FrameOutcome::kCorrupt;
    whole.size = file.size();
    whole.reason = magic.error().message;
    scan.damage(whole);
    return false;
  }
  std::vector<std::byte> payload;
  GoodFrames good;
  for (;;) {
    FrameResult frame = reader.Next(payload);
    if (frame.outcome == FrameOutcome::kCleanEnd) return true;
    if (frame.outcome != FrameOutcome::kRecord) {
      scan.damage(frame);
      if (frame.outcome == FrameOutcome::kTornTail) return true;
      continue;
    }
    if (frame.type == FrameType::kPrediction && CanBePredicted(payload, good))
      good.Add(frame.offset);
    if (frame.type != FrameType::kPayloadChunk) continue;
    PayloadChunk chunk;
    const Status parsed = ParseChunk(payload, chunk);
    // What it builds on is damaged, and that has been said.
    const auto codec = static_cast<TensorCodec>(chunk.codec);
    if (parsed && IsDifference(codec) && !good.Has(chunk.base)) continue;
    if (parsed && codec == TensorCodec::kPrediction && !good.Has(chunk.prediction)) continue;
    if (parsed) good.Add(frame.offset);
    if (parsed && scan.chunk(chunk, frame.offset)) continue;
    frame.outcome = FrameOutcome::kCorrupt;
    frame.reason = parsed ? "the chunk contradicts others of its payload" : parsed.error().message;
    scan.damage(frame);
  }
}

}  // namespace deja::format
