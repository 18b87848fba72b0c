#include "format/payloads/payload_scan.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <unordered_set>
#include <vector>

#include "format/payloads/chunk_reader.h"
#include "format/payloads/prediction.h"
#include "format/tensor/element_difference.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

// Whether what the prediction in this frame builds on is among the `good` chunks.
bool CanBePredicted(std::span<const std::byte> frame, const std::unordered_set<uint64_t>& good) {
  Prediction prediction;
  if (!Decode(frame, prediction)) return false;
  const auto is_good = [&](uint64_t at) { return good.count(at) != 0; };
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
  std::unordered_set<uint64_t> good;  // offsets of chunks that others may build on
  for (;;) {
    FrameResult frame = reader.Next(payload);
    if (frame.outcome == FrameOutcome::kCleanEnd) return true;
    if (frame.outcome != FrameOutcome::kRecord) {
      scan.damage(frame);
      if (frame.outcome == FrameOutcome::kTornTail) return true;
      continue;
    }
    if (frame.type == FrameType::kPrediction && CanBePredicted(payload, good))
      good.insert(frame.offset);
    if (frame.type != FrameType::kPayloadChunk) continue;
    PayloadChunk chunk;
    const Status parsed = ParseChunk(payload, chunk);
    // What it builds on is damaged, and that has been said.
    const auto codec = static_cast<TensorCodec>(chunk.codec);
    if (parsed && IsDifference(codec) && good.count(chunk.base) == 0) continue;
    if (parsed && codec == TensorCodec::kPrediction && good.count(chunk.prediction) == 0) continue;
    if (parsed) good.insert(frame.offset);
    if (parsed && scan.chunk(chunk, frame.offset)) continue;
    frame.outcome = FrameOutcome::kCorrupt;
    frame.reason = parsed ? "the chunk contradicts others of its payload" : parsed.error().message;
    scan.damage(frame);
  }
}

}  // namespace deja::format
