#include "format/payloads/piece_rows.h"

#include <limits>

namespace deja::format {

bool PieceRows::Next(size_t& at, Hash128& hash, PayloadEntry& entry) const {
  entry = PayloadEntry();
  Row row;
  if (at >= rows_.size() || !rows_.At(at, row)) return false;
  hash = row.hash;
  do {
    PayloadPiece piece;
    piece.offset = row.offset;
    piece.size = row.size;
    piece.frame = row.frame;
    piece.segment = row.segment;
    (void)entry.Add(row.total_size, piece);
    ++at;
  } while (at < rows_.size() && rows_.At(at, row) && row.hash == hash);
  return true;
}

size_t PieceRows::Behind(const Hash128& hash) const {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  constexpr uint32_t kLast = std::numeric_limits<uint32_t>::max();
  return rows_.LowerBound({hash, kLast, kLast, kMost, kMost, kMost, kMost});
}

bool PieceRows::Find(const Hash128& hash, PayloadEntry& entry) const {
  size_t at = rows_.LowerBound({hash, 0, 0, 0, 0, 0, 0});
  Hash128 found;
  PayloadEntry pieces;
  if (!Next(at, found, pieces) || found != hash) return false;
  for (const PayloadPiece& piece : pieces.pieces) (void)entry.Add(pieces.total_size, piece);
  return true;
}

}  // namespace deja::format
