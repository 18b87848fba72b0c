// ScannedPayloads: what the payload files of a folder hold, and what the index that a recovery
// writes lists. There may be more of it than memory should hold.
//
// Fill it, call Settle, then ask. One thread.
#ifndef DEJA_FORMAT_REPAIR_SCANNED_PAYLOADS_H_
#define DEJA_FORMAT_REPAIR_SCANNED_PAYLOADS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "format/log/rank_writer.h"
#include "format/payloads/piece_rows.h"
#include "format/wire/index_elements.h"
#include "format/wire/messages.h"

namespace deja::format {

class ScannedPayloads {
 public:
  // The pieces of one payload by segment.
  using BySegment = std::map<uint32_t, PartialPayload>;

  // Adds a chunk that was found at `frame` of the segment's file.
  void Add(const PayloadChunk& chunk, uint32_t segment, uint64_t frame);
  Status Settle() { return rows_.Sort(); }

  [[nodiscard]] size_t size() const { return rows_.size(); }
  // The payload that begins at `at`, which is then after it; false at the end.
  bool Next(size_t& at, Hash128& hash, BySegment& pieces) const;
  [[nodiscard]] BySegment Find(const Hash128& hash) const;
  // The newest segment that has all of it.
  [[nodiscard]] static std::optional<uint32_t> NewestWhole(const BySegment& pieces);

 private:
  static void Take(const PayloadEntry& entry, BySegment& pieces);
  PieceRows rows_;
};

// What was scanned and what a writer has added since, of the writer's segments alone: the others
// are gone. The same payload may be in several segments: the newest is named. All pieces are named
// if it is whole in none. Borrows both.
class RecoveredElements final : public IndexElements {
 public:
  // `segments`: those that are still there.
  RecoveredElements(const ScannedPayloads& scanned, const std::vector<SegmentFile>& segments);

  [[nodiscard]] size_t size() const override { return scanned_.size() + added_.size(); }
  IndexElement Next() override;

 private:
  // What a writer lists of a payload in one segment.
  struct Added {
    Hash128 hash;
    uint32_t segment = 0;
    const PayloadInfo* whole = nullptr;
    const PartialPayload* partial = nullptr;
  };
  // Puts the elements of the next one of all payloads into elements_; false at the end.
  bool Advance();
  void TakeAdded(const Hash128& hash, ScannedPayloads::BySegment& pieces,
                 std::pair<uint32_t, const PayloadInfo*>& newest);

  const ScannedPayloads& scanned_;
  std::set<uint32_t> there_;  // segments
  std::vector<Added> added_;  // by hash
  size_t next_added_ = 0;
  size_t next_row_ = 0;
  bool has_scanned_ = false;  // the two that follow are the next one of the scan
  Hash128 scanned_hash_;
  ScannedPayloads::BySegment scanned_pieces_;
  PayloadInfo payload_;
  bool is_payload_ = false;
  std::vector<PayloadPieces> pieces_;
  size_t next_piece_ = 0;
};

// The counts of payloads that a footer states.
void CountElements(IndexElements& elements, Footer& footer);

}  // namespace deja::format

#endif  // DEJA_FORMAT_REPAIR_SCANNED_PAYLOADS_H_
