#include "format/payloads/payload_entries.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace deja::format {
namespace {

uint64_t MixedHash(const Hash128& hash, uint64_t secret) {
  uint64_t second;
  std::memcpy(&second, hash.bytes.data() + sizeof second, sizeof second);
  uint64_t mixed = hash.Prefix() ^ secret;
  mixed = (mixed ^ (mixed >> 32)) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ second ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9;
  return mixed ^ (mixed >> 32);
}

}  // namespace

bool PayloadEntry::Complete() const {
  if (indexed) return true;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  ranges.reserve(pieces.size());
  for (const PayloadPiece& piece : pieces) ranges.emplace_back(piece.offset, piece.size);
  std::sort(ranges.begin(), ranges.end());
  uint64_t done = 0;
  for (const auto& [offset, size] : ranges) {
    if (offset > done) return false;
    done = std::max(done, offset + size);
  }
  return done == total_size;
}

bool PayloadEntry::Add(uint64_t of_size, const PayloadPiece& piece) {
  if (pieces.empty()) total_size = of_size;
  if (total_size != of_size || indexed) return false;
  pieces.push_back(piece);
  return true;
}

void PayloadEntries::Clear() {
  entries_.clear();
  more_.clear();
  table_.clear();
}

// Where it is in the table, or the free place where it would be.
size_t PayloadEntries::PlaceOf(const Hash128& hash) const {
  size_t place = MixedHash(hash, secret_) & (table_.size() - 1);
  while (table_[place] != kNone && entries_[table_[place]].hash != hash)
    place = (place + 1) & (table_.size() - 1);
  return place;
}

void PayloadEntries::Grow() {
  constexpr size_t kLeast = 64;
  table_.assign(std::max(kLeast, table_.size() * 2), kNone);
  for (uint32_t i = 0; i < entries_.size(); ++i) table_[PlaceOf(entries_[i].hash)] = i;
}

PayloadEntries::Small& PayloadEntries::Make(const Hash128& hash) {
  if (entries_.size() >= table_.size() / 2) Grow();
  const size_t place = PlaceOf(hash);
  if (table_[place] == kNone) {
    table_[place] = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back().hash = hash;
  }
  return entries_[table_[place]];
}

bool PayloadEntries::Find(const Hash128& hash, PayloadEntry& entry) const {
  if (table_.empty()) return false;
  const uint32_t index = table_[PlaceOf(hash)];
  if (index == kNone) return false;
  entry = At(index);
  return true;
}

PayloadEntry PayloadEntries::At(size_t index) const {
  const Small& small = entries_[index];
  PayloadEntry entry;
  entry.total_size = small.total_size;
  entry.indexed = small.indexed;
  if (!small.has_piece) return entry;
  PayloadPiece first;
  first.offset = small.offset;
  first.size = small.size;
  if (small.in_tail)
    first.part = reinterpret_cast<const TailPayload*>(static_cast<uintptr_t>(small.frame));
  else
    first.frame = small.frame;
  first.segment = small.segment;
  entry.pieces.push_back(first);
  if (small.more != kNone)
    entry.pieces.insert(entry.pieces.end(), more_[small.more].begin(), more_[small.more].end());
  return entry;
}

void PayloadEntries::Append(Small& small, const PayloadPiece& piece) {
  if (small.has_piece) {
    if (small.more == kNone) {
      small.more = static_cast<uint32_t>(more_.size());
      more_.emplace_back();
    }
    more_[small.more].push_back(piece);
    return;
  }
  small.has_piece = true;
  small.offset = piece.offset;
  small.size = piece.size;
  small.in_tail = piece.part != nullptr;
  small.frame = small.in_tail ? reinterpret_cast<uintptr_t>(piece.part) : piece.frame;
  small.segment = piece.segment;
}

bool PayloadEntries::Add(const Hash128& hash, uint64_t total_size, const PayloadPiece& piece) {
  Small& small = Make(hash);
  if (!small.has_piece) small.total_size = total_size;
  if (small.total_size != total_size || small.indexed) return false;
  Append(small, piece);
  return true;
}

void PayloadEntries::Set(const Hash128& hash, const PayloadEntry& entry) {
  Small& small = Make(hash);
  small.total_size = entry.total_size;
  small.indexed = entry.indexed;
  small.has_piece = false;
  if (small.more != kNone) more_[small.more].clear();
  for (const PayloadPiece& piece : entry.pieces) Append(small, piece);
}

}  // namespace deja::format
