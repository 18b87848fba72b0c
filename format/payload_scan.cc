#include "format/payload_scan.h"

#include <cstddef>
#include <unordered_set>
#include <vector>

#include "format/element_difference.h"
#include "format/payload_table.h"

namespace deja::format {

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
    if (frame.type != FrameType::kPayloadChunk) continue;
    PayloadChunk chunk;
    const Status parsed = ParseChunk(payload, chunk);
    // What it builds on is damaged, and that has been said.
    if (parsed && IsDifference(static_cast<TensorCodec>(chunk.codec)) &&
        good.count(chunk.base) == 0)
      continue;
    if (parsed) good.insert(frame.offset);
    if (parsed && scan.chunk(chunk, frame.offset)) continue;
    frame.outcome = FrameOutcome::kCorrupt;
    frame.reason = parsed ? "the chunk contradicts others of its payload" : parsed.error().message;
    scan.damage(frame);
  }
}

}  // namespace deja::format
