#include "format/payloads/payload_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "format/payloads/chunk_reader.h"
#include "format/payloads/payload_scan.h"
#include "format/payloads/scratch_buffers.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/frame_format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format {
namespace {

class Hasher {
 public:
  Hasher() { XXH3_128bits_reset(&state_); }
  void Update(std::span<const std::byte> bytes) {
    XXH3_128bits_update(&state_, bytes.data(), bytes.size());
  }
  Hash128 Digest() {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_));
    Hash128 hash;
    std::memcpy(hash.bytes.data(), canonical.digest, hash.bytes.size());
    return hash;
  }

 private:
  XXH3_state_t state_;
};

Status Incomplete() {
  return Fail(ErrorCode::kNotFound, "the payload is not completely in the trace");
}

}  // namespace

void PayloadTable::SetIndex(std::unique_ptr<PayloadIndex> index) {
  by_need_->index = std::move(index);
}

bool PayloadTable::AddIndexed(const Index& index) {
  for (const PayloadInfo& info : index.payloads) {
    Entry entry;
    entries_.Find(info.hash, entry);
    if (!TakeIndexed(info, entry)) return false;
    entries_.Set(info.hash, entry);
  }
  return std::all_of(index.pieces.begin(), index.pieces.end(), [&](const PayloadPieces& info) {
    return TakeIndexedPieces(
               info,
               [&](const Piece& piece) { return entries_.Add(info.hash, info.total_size, piece); })
        .has_value();
  });
}

bool PayloadTable::AddChunk(const PayloadChunk& chunk, uint32_t segment, uint64_t offset) {
  const Piece piece = PieceOf(chunk, segment, offset);
  if (spilled_ == nullptr && entries_.size() >= most_in_memory_) Spill();
  if (spilled_ == nullptr) return entries_.Add(chunk.hash, chunk.total_size, piece);
  spilled_->Add(chunk.hash, chunk.total_size, piece);
  return true;
}

void PayloadTable::Spill() {
  spilled_ = std::make_unique<PieceRows>(PieceRows::kMostInMemory, spill_folder_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry entry = entries_.At(i);
    for (const Piece& piece : entry.pieces)
      spilled_->Add(entries_.HashAt(i), entry.total_size, piece);
  }
  entries_.Clear();
}

Status PayloadTable::EndChunks() {
  return spilled_ == nullptr ? Status() : spilled_->Sort();
}

bool PayloadTable::TakeAll(const Index& index, Entry& entry) const {
  return std::all_of(
             index.payloads.begin(), index.payloads.end(),
             [&](const PayloadInfo& info) { return TakeIndexed(info, entry).has_value(); }) &&
         std::all_of(index.pieces.begin(), index.pieces.end(), [&](const PayloadPieces& info) {
           return TakeIndexedPieces(
                      info, [&](const Piece& piece) { return entry.Add(info.total_size, piece); })
               .has_value();
         });
}

bool PayloadTable::Find(const Hash128& hash, Entry& entry) const {
  const bool in_memory = entries_.Find(hash, entry);
  if (spilled_ != nullptr) return spilled_->Find(hash, entry) || in_memory;
  if (in_memory) return true;
  if (by_need_->index == nullptr) return false;
  Index index;
  if (by_need_->index->Find(hash, index) && TakeAll(index, entry))
    return entry.indexed || !entry.pieces.empty();
  FillFromFiles();
  entry = Entry();
  return entries_.Find(hash, entry);
}

void PayloadTable::FillFromFiles() const {
  by_need_->index = nullptr;
  by_need_->by_hash.clear();
  entries_.Clear();
  for (const auto& [segment, file] : files_) {
    if (file == nullptr) continue;
    PayloadScan scan;
    scan.chunk = [this, segment = segment](const PayloadChunk& chunk, uint64_t offset) {
      return entries_.Add(chunk.hash, chunk.total_size, PieceOf(chunk, segment, offset));
    };
    // `deja verify` says what is damaged; a reader of such a payload gets the answer that it is not
    // there.
    scan.damage = [](const FrameResult&) {};
    (void)ScanPayloadFile(*file, scan);
  }
}

bool PayloadTable::SomeAfter(std::optional<Hash128>& last, Some& some) const {
  some.clear();
  if (by_need_->index != nullptr) {
    const Answer answer = SomeIndexedAfter(last, some);
    if (answer != Answer::kDamaged) return answer == Answer::kSome;
    some.clear();
    FillFromFiles();
  }
  return spilled_ == nullptr ? SomeEntriesAfter(last, some) : SomeSpilledAfter(last, some);
}

// Those of a range of hashes, with what the tail has of them.
bool PayloadTable::SomeSpilledAfter(std::optional<Hash128>& last, Some& some) const {
  constexpr size_t kMost = 1024;
  size_t at = last ? spilled_->Behind(*last) : 0;
  Hash128 hash;
  for (Entry entry; some.size() < kMost && spilled_->Next(at, hash, entry);)
    some.emplace_back(hash, std::move(entry));
  const bool is_end = some.size() < kMost;
  const Hash128 end = is_end ? Hash128() : some.back().first;
  AddEntriesUpTo(is_end ? nullptr : &end, last, some);
  if (some.empty()) return false;
  last = some.back().first;
  return true;
}

// What is in memory of hashes after `last` up to `*end`, added to `some`, which is sorted.
void PayloadTable::AddEntriesUpTo(const Hash128* end, const std::optional<Hash128>& last,
                                  Some& some) const {
  SortEntries();
  const auto by_first = [](const auto& a, const auto& b) { return a.first < b.first; };
  const size_t sorted = some.size();
  for (const uint32_t index : by_need_->by_hash) {
    const Hash128& hash = entries_.HashAt(index);
    if (last && !(*last < hash)) continue;
    if (end != nullptr && *end < hash) break;
    const auto behind = some.begin() + static_cast<ptrdiff_t>(sorted);
    const auto known = std::lower_bound(some.begin(), behind, std::pair(hash, Entry()), by_first);
    Entry entry = entries_.At(index);
    if (known == behind || known->first != hash) {
      some.emplace_back(hash, std::move(entry));
      continue;
    }
    for (const Piece& piece : entry.pieces) (void)known->second.Add(entry.total_size, piece);
  }
  std::inplace_merge(some.begin(), some.begin() + static_cast<ptrdiff_t>(sorted), some.end(),
                     by_first);
}

void PayloadTable::SortEntries() const {
  std::vector<uint32_t>& by_hash = by_need_->by_hash;
  if (by_hash.size() == entries_.size()) return;
  by_hash.resize(entries_.size());
  std::iota(by_hash.begin(), by_hash.end(), 0);
  std::sort(by_hash.begin(), by_hash.end(),
            [&](uint32_t a, uint32_t b) { return entries_.HashAt(a) < entries_.HashAt(b); });
}

// The rest of a block.
PayloadTable::Answer PayloadTable::SomeIndexedAfter(std::optional<Hash128>& last,
                                                    Some& some) const {
  PayloadIndex& blocks = *by_need_->index;
  for (size_t block = last ? blocks.BlockBehind(*last) : 0; block < blocks.blocks(); ++block) {
    Index index;
    if (!blocks.ReadBlock(block, index)) return Answer::kDamaged;
    std::map<Hash128, Index> by_hash;
    for (PayloadInfo& info : index.payloads)
      if (!last || *last < info.hash) by_hash[info.hash].payloads.push_back(std::move(info));
    for (PayloadPieces& info : index.pieces)
      if (!last || *last < info.hash) by_hash[info.hash].pieces.push_back(std::move(info));
    for (auto& [hash, about] : by_hash) {
      if (blocks.GoesOn(block, hash)) {
        about = Index();
        if (!blocks.Find(hash, about)) return Answer::kDamaged;
      }
      Entry entry;
      if (!TakeAll(about, entry)) return Answer::kDamaged;
      if (!entry.pieces.empty()) some.emplace_back(hash, std::move(entry));
    }
    if (some.empty()) continue;
    last = some.back().first;
    return Answer::kSome;
  }
  return Answer::kEnd;
}

bool PayloadTable::SomeEntriesAfter(std::optional<Hash128>& last, Some& some) const {
  constexpr size_t kMost = 4096;
  SortEntries();
  const std::vector<uint32_t>& by_hash = by_need_->by_hash;
  auto next = !last ? by_hash.begin()
                    : std::upper_bound(by_hash.begin(), by_hash.end(), *last,
                                       [&](const Hash128& hash, uint32_t entry) {
                                         return hash < entries_.HashAt(entry);
                                       });
  for (; next != by_hash.end() && some.size() < kMost; ++next)
    some.emplace_back(entries_.HashAt(*next), entries_.At(*next));
  if (some.empty()) return false;
  last = some.back().first;
  return true;
}

template <typename Visit>
void PayloadTable::ForEach(Visit visit) const {
  const Reading reading(*this);
  std::optional<Hash128> last;
  for (Some some; SomeAfter(last, some);)
    for (const auto& [hash, entry] : some) visit(hash, entry);
}

Status PayloadTable::TakeIndexed(const PayloadInfo& info, Entry& entry) const {
  const auto bad = [](const char* what) {
    return Fail(ErrorCode::kCorrupt, std::string("index, payload: ") + what);
  };
  if (info.hash.IsZero()) return bad("no hash");
  if (info.chunk_offsets.empty() ||
      info.total_size > info.chunk_offsets.size() * kPayloadChunkBytes) {
    return bad("more bytes than its chunks can hold");
  }
  if (info.total_size > kMaxPayloadBytes) return bad("larger than the format allows");
  const uint64_t file_bytes = FileBytes(info.segment);
  uint64_t previous = 0;
  for (const uint64_t offset : info.chunk_offsets) {
    if (offset <= previous || offset >= file_bytes) return bad("chunks out of order or outside");
    previous = offset;
  }
  if (entry.indexed) return bad("listed twice");
  entry.pieces.clear();  // of other segments: here is all of it
  entry.total_size = info.total_size;
  entry.indexed = true;
  entry.pieces.reserve(info.chunk_offsets.size());
  for (const uint64_t offset : info.chunk_offsets) {
    Piece piece;
    piece.frame = offset;
    piece.segment = info.segment;
    entry.pieces.push_back(piece);
  }
  return {};
}

template <typename Add>
Status PayloadTable::TakeIndexedPieces(const PayloadPieces& info, Add add) const {
  const auto bad = [](const char* what) {
    return Fail(ErrorCode::kCorrupt, std::string("index, pieces of a payload: ") + what);
  };
  if (info.hash.IsZero()) return bad("no hash");
  if (info.total_size > kMaxPayloadBytes) return bad("larger than the format allows");
  if (info.starts.size() != info.chunk_offsets.size() ||
      info.sizes.size() != info.chunk_offsets.size()) {
    return bad("as many places as chunks are needed");
  }
  const uint64_t file_bytes = FileBytes(info.segment);
  for (size_t i = 0; i < info.chunk_offsets.size(); ++i) {
    Piece piece;
    piece.offset = info.starts[i];
    piece.size = info.sizes[i];
    piece.frame = info.chunk_offsets[i];
    piece.segment = info.segment;
    if (piece.frame == 0 || piece.frame >= file_bytes) {
      return bad("chunks outside");
    }
    if (piece.size > kPayloadChunkBytes || piece.offset > info.total_size ||
        piece.size > info.total_size - piece.offset) {
      return bad("a chunk lies outside of its payload");
    }
    if (!add(piece)) return bad("listed twice");
  }
  return {};
}

uint64_t PayloadTable::FileBytes(uint32_t segment) const {
  const auto file = files_.find(segment);
  return file == files_.end() || file->second == nullptr ? 0 : file->second->size();
}

bool PayloadTable::AddTailPart(const TailPayload& part) {
  if (part.hash.IsZero() || part.total_size > kMaxPayloadBytes || part.offset > part.total_size ||
      part.size > part.total_size - part.offset) {
    return false;
  }
  Piece piece;
  piece.offset = part.offset;
  piece.size = part.size;
  piece.part = &part;
  return entries_.Add(part.hash, part.total_size, piece);
}

std::optional<PayloadTable::Entry> PayloadTable::Copy(const Hash128& hash) const {
  const Reading reading(*this);
  Entry entry;
  return Find(hash, entry) ? std::optional(std::move(entry)) : std::nullopt;
}

std::optional<PayloadTable::Part> PayloadTable::PartOf(const Hash128& hash) const {
  const std::optional<Entry> entry = Copy(hash);
  if (!entry) return std::nullopt;
  Part part;
  part.total_size = entry->total_size;
  if (entry->indexed) {
    part.ranges.emplace_back(0, part.total_size);
  } else {
    for (const Piece& piece : entry->pieces) {
      part.ranges.emplace_back(piece.offset, piece.size);
    }
  }
  return part;
}

std::optional<uint64_t> PayloadTable::Size(const Hash128& hash) const {
  const std::optional<Entry> entry = Copy(hash);
  if (!entry || !entry->Complete()) return std::nullopt;
  return entry->total_size;
}

std::vector<PayloadInfo> PayloadTable::List() const {
  std::vector<PayloadInfo> list;
  std::optional<Hash128> last;
  for (std::vector<PayloadInfo> some; ListAfter(last, some);)
    std::move(some.begin(), some.end(), std::back_inserter(list));
  return list;
}

bool PayloadTable::ListAfter(std::optional<Hash128>& last, std::vector<PayloadInfo>& list) const {
  list.clear();
  const Reading reading(*this);
  Some some;
  if (!SomeAfter(last, some)) return false;
  for (const auto& [hash, entry] : some) {
    if (!entry.Complete()) continue;
    PayloadInfo info;
    info.hash = hash;
    info.total_size = entry.total_size;
    for (const Piece& piece : entry.pieces) {
      if (piece.part == nullptr) info.chunk_offsets.push_back(piece.frame);
      if (piece.part == nullptr && info.chunk_offsets.size() == 1) info.segment = piece.segment;
    }
    list.push_back(std::move(info));
  }
  return true;
}

std::vector<Hash128> PayloadTable::Partial() const {
  std::vector<Hash128> list;
  ForEach([&](const Hash128& hash, const Entry& entry) {
    if (!entry.Complete()) list.push_back(hash);
  });
  return list;
}

PayloadTable::Counts PayloadTable::Count() const {
  Counts counts;
  ForEach([&](const Hash128&, const Entry& entry) {
    if (entry.Complete()) {
      ++counts.complete;
      counts.complete_bytes += entry.total_size;
      return;
    }
    ++counts.partial;
    for (const Piece& piece : entry.pieces) counts.partial_bytes += piece.size;
  });
  return counts;
}

Status PayloadTable::Stream(const Hash128& hash,
                            const std::function<void(std::span<const std::byte>)>& sink) const {
  const std::optional<Entry> entry = Copy(hash);
  if (!entry) return Incomplete();
  std::vector<Sourced> pieces;
  pieces.reserve(entry->pieces.size());
  for (const Piece& piece : entry->pieces) pieces.push_back({this, piece});
  if (!entry->indexed) {
    std::sort(pieces.begin(), pieces.end(),
              [](const Sourced& a, const Sourced& b) { return a.piece.offset < b.piece.offset; });
  }
  return StreamPieces(hash, entry->total_size, pieces, sink);
}

Status PayloadTable::StreamTogether(const Hash128& hash,
                                    std::span<const PayloadTable* const> tables,
                                    const std::function<void(std::span<const std::byte>)>& sink) {
  std::vector<Sourced> pieces;
  std::optional<uint64_t> total_size;
  for (const PayloadTable* table : tables) {
    const std::optional<Entry> entry = table->Copy(hash);
    if (!entry) continue;
    if (entry->indexed) return table->Stream(hash, sink);
    if (total_size && *total_size != entry->total_size) continue;
    total_size = entry->total_size;
    for (const Piece& piece : entry->pieces) pieces.push_back({table, piece});
  }
  if (!total_size) return Incomplete();
  std::sort(pieces.begin(), pieces.end(),
            [](const Sourced& a, const Sourced& b) { return a.piece.offset < b.piece.offset; });
  return StreamPieces(hash, *total_size, pieces, sink);
}

Status PayloadTable::ReadChunk(const Hash128& hash, uint64_t total_size, const Piece& piece,
                               std::vector<std::byte>& frame, PayloadChunk& chunk) const {
  const auto file = files_.find(piece.segment);
  if (file == files_.end() || file->second == nullptr) return Incomplete();
  const ChunkReader reader(*file->second);
  DEJA_RETURN_IF_ERROR(reader.Read(piece.frame, frame, chunk));
  if (chunk.hash != hash || chunk.total_size != total_size) {
    return Fail(ErrorCode::kCorrupt, reader.PlaceOf(piece.frame) + "a chunk of another payload");
  }
  return {};
}

std::optional<uint32_t> PayloadTable::ElementSize(const Hash128& hash) const {
  const std::optional<Entry> entry = Copy(hash);
  if (!entry || entry->pieces.empty()) return std::nullopt;
  const Piece& piece = entry->pieces.front();
  if (piece.part != nullptr) return piece.part->element_size;
  std::vector<std::byte> frame;
  PayloadChunk chunk;
  if (!ReadChunk(hash, entry->total_size, piece, frame, chunk)) return std::nullopt;
  return chunk.element_size;
}

// Leaves out what ends before `skip_to`.
Status PayloadTable::ReadPiece(
    const Hash128& hash, uint64_t total_size, const Piece& piece, uint64_t skip_to,
    const std::function<void(uint64_t, std::span<const std::byte>)>& sink) const {
  ScratchBuffers scratch;
  std::vector<std::byte>& decoded = scratch.decoded();
  if (piece.part != nullptr) {
    // Parts of the tail can be large: they are read a chunk at a time.
    for (uint64_t at = 0; at < piece.size; at += kPayloadChunkBytes) {
      TailPayload part = *piece.part;
      part.offset += at;
      part.file_offset += at;
      part.size = std::min<uint64_t>(kPayloadChunkBytes, piece.size - at);
      if (part.offset + part.size <= skip_to) continue;
      decoded.resize(static_cast<size_t>(part.size));
      DEJA_RETURN_IF_ERROR(tail_->ReadPayload(part, decoded));
      sink(part.offset, decoded);
    }
    return {};
  }
  PayloadChunk chunk;
  DEJA_RETURN_IF_ERROR(ReadChunk(hash, total_size, piece, scratch.frame(), chunk));
  decoded.resize(static_cast<size_t>(chunk.size));
  ChunkReader reader(*files_.at(piece.segment), states_.get(), piece.segment);
  DEJA_RETURN_IF_ERROR(reader.Decode(chunk, piece.frame, decoded));
  sink(chunk.offset, decoded);
  return {};
}

Status PayloadTable::ReadPieces(const Hash128& hash, const PieceSink& sink) const {
  const std::optional<Entry> entry = Copy(hash);
  if (!entry) return Incomplete();
  Status status;
  for (const Piece& piece : entry->pieces) {
    const Status read = ReadPiece(hash, entry->total_size, piece, 0,
                                  [&](uint64_t offset, std::span<const std::byte> bytes) {
                                    sink(entry->total_size, offset, bytes);
                                  });
    if (!read && status) status = read;
  }
  return status;
}

Status PayloadTable::StreamPieces(const Hash128& hash, uint64_t total_size,
                                  std::span<const Sourced> pieces,
                                  const std::function<void(std::span<const std::byte>)>& sink) {
  Hasher hasher;
  uint64_t done = 0;
  bool gap = false;
  const auto emit = [&](uint64_t offset, std::span<const std::byte> bytes) {
    gap |= offset > done;
    if (gap || offset + bytes.size() <= done) return;
    const auto fresh = bytes.subspan(static_cast<size_t>(done - offset));
    hasher.Update(fresh);
    sink(fresh);
    done += fresh.size();
  };
  Status failed;
  for (const auto& [table, piece] : pieces) {
    if (piece.size != kUnknownSize && done > 0 && piece.offset + piece.size <= done) continue;
    // Another copy may have what this one should have had.
    const Status read = table->ReadPiece(hash, total_size, piece, done, emit);
    if (!read && failed) failed = read;
    if (gap) break;
  }
  if (done != total_size) return failed ? Incomplete() : failed;
  if (hasher.Digest() != hash) {
    return Fail(ErrorCode::kCorrupt, "the payload's bytes do not have its hash");
  }
  return {};
}

}  // namespace deja::format
