#include "format/repair/scanned_payloads.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace deja::format {

void ScannedPayloads::Add(const PayloadChunk& chunk, uint32_t segment, uint64_t frame) {
  PayloadPiece piece;
  piece.offset = chunk.offset;
  piece.size = chunk.size;
  piece.frame = frame;
  piece.segment = segment;
  rows_.Add(chunk.hash, chunk.total_size, piece);
}

void ScannedPayloads::Take(const PayloadEntry& entry, BySegment& pieces) {
  pieces.clear();
  for (const PayloadPiece& piece : entry.pieces) {
    PartialPayload& in_segment = pieces[piece.segment];
    in_segment.total_size = entry.total_size;
    in_segment.Add(piece.offset, piece.size, piece.frame);
  }
}

bool ScannedPayloads::Next(size_t& at, Hash128& hash, BySegment& pieces) const {
  PayloadEntry entry;
  if (!rows_.Next(at, hash, entry)) return false;
  Take(entry, pieces);
  return true;
}

ScannedPayloads::BySegment ScannedPayloads::Find(const Hash128& hash) const {
  BySegment pieces;
  PayloadEntry entry;
  if (rows_.Find(hash, entry)) Take(entry, pieces);
  return pieces;
}

std::optional<uint32_t> ScannedPayloads::NewestWhole(const BySegment& pieces) {
  for (auto one = pieces.rbegin(); one != pieces.rend(); ++one)
    if (one->second.IsWhole()) return one->first;
  return std::nullopt;
}

RecoveredElements::RecoveredElements(const ScannedPayloads& scanned,
                                     const std::vector<SegmentFile>& segments)
    : scanned_(scanned) {
  for (const SegmentFile& segment : segments) {
    there_.insert(segment.facts.number);
    for (const PayloadInfo& info : segment.whole)
      added_.push_back({info.hash, segment.facts.number, &info, nullptr});
    for (const auto& [hash, partial] : segment.partial)
      added_.push_back({hash, segment.facts.number, nullptr, &partial});
  }
  std::sort(added_.begin(), added_.end(), [](const Added& a, const Added& b) {
    return std::tie(a.hash, a.segment) < std::tie(b.hash, b.segment);
  });
}

IndexElement RecoveredElements::Next() {
  while (!is_payload_ && next_piece_ == pieces_.size())
    if (!Advance()) return {};
  if (!is_payload_) return {nullptr, &pieces_[next_piece_++]};
  is_payload_ = false;
  return {&payload_, nullptr};
}

bool RecoveredElements::Advance() {
  if (!has_scanned_)
    has_scanned_ = scanned_.Next(next_row_, scanned_hash_, scanned_pieces_);
  if (!has_scanned_ && next_added_ == added_.size()) return false;
  const bool scanned_first = has_scanned_ && (next_added_ == added_.size() ||
                                              !(added_[next_added_].hash < scanned_hash_));
  const Hash128 hash = scanned_first ? scanned_hash_ : added_[next_added_].hash;
  ScannedPayloads::BySegment pieces;
  if (scanned_first) {
    pieces = std::move(scanned_pieces_);
    has_scanned_ = false;
    std::erase_if(pieces, [&](const auto& one) { return there_.count(one.first) == 0; });
  }
  std::pair<uint32_t, const PayloadInfo*> added{0, nullptr};
  TakeAdded(hash, pieces, added);
  pieces_.clear();
  next_piece_ = 0;
  const std::optional<uint32_t> whole = ScannedPayloads::NewestWhole(pieces);
  is_payload_ = whole || added.second != nullptr;
  if (added.second != nullptr && (!whole || added.first >= *whole)) {
    payload_ = *added.second;
  } else if (whole) {
    payload_ = pieces.at(*whole).Info(hash);
    payload_.segment = *whole;
  }
  if (is_payload_) return true;
  for (const auto& [segment, partial] : pieces) {
    pieces_.push_back(partial.Pieces(hash));
    pieces_.back().segment = segment;
  }
  return true;
}

// Its parts into `pieces`; `newest` is then the newest whole one, and its segment.
void RecoveredElements::TakeAdded(const Hash128& hash, ScannedPayloads::BySegment& pieces,
                                  std::pair<uint32_t, const PayloadInfo*>& newest) {
  for (; next_added_ < added_.size() && added_[next_added_].hash == hash; ++next_added_) {
    const Added& added = added_[next_added_];
    if (added.whole != nullptr) {
      newest = {added.segment, added.whole};
      continue;
    }
    PartialPayload& known = pieces[added.segment];
    known.total_size = added.partial->total_size;
    for (const auto& [offset, piece] : added.partial->pieces)
      known.Add(offset, piece.size, piece.frame);
  }
}

void CountElements(IndexElements& elements, Footer& footer) {
  footer.payloads = 0;
  footer.payload_bytes = 0;
  footer.partial_payloads = 0;
  footer.partial_payload_bytes = 0;
  Hash128 before;
  for (IndexElement one = elements.Next(); !one.is_end(); one = elements.Next()) {
    if (one.payload != nullptr) {
      ++footer.payloads;
      footer.payload_bytes += one.payload->total_size;
      continue;
    }
    for (const uint64_t size : one.pieces->sizes) footer.partial_payload_bytes += size;
    footer.partial_payloads += footer.partial_payloads == 0 || one.pieces->hash != before ? 1 : 0;
    before = one.pieces->hash;
  }
}

}  // namespace deja::format
