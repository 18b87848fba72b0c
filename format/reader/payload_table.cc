#include "format/reader/payload_table.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "format/reader/chunk_reader.h"
#include "format/reader/payload_scan.h"
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
  by_need_ = std::make_unique<ByNeed>();
  by_need_->index = std::move(index);
}

bool PayloadTable::TakeIndexed(const Index& index) const {
  return std::all_of(index.payloads.begin(), index.payloads.end(),
                     [&](const PayloadInfo& info) { return TakeIndexed(info).has_value(); }) &&
         std::all_of(index.pieces.begin(), index.pieces.end(), [&](const PayloadPieces& info) {
           return TakeIndexedPieces(info).has_value();
         });
}

const PayloadTable::Entry* PayloadTable::Find(const Hash128& hash) const {
  auto found = entries_.find(hash);
  if (found == entries_.end() && by_need_ != nullptr && by_need_->index != nullptr) {
    Index index;
    if (!by_need_->index->Find(hash, index) || !TakeIndexed(index)) FillFromFiles();
    found = entries_.find(hash);
  }
  return found == entries_.end() ? nullptr : &found->second;
}

void PayloadTable::FindAll() const {
  if (by_need_ == nullptr || by_need_->index == nullptr) return;
  entries_.clear();
  if (by_need_->index->ReadAll([this](const Index& index) { return TakeIndexed(index); })) {
    by_need_->index = nullptr;
  } else {
    FillFromFiles();
  }
}

void PayloadTable::FillFromFiles() const {
  by_need_->index = nullptr;
  entries_.clear();
  for (const auto& [segment, file] : files_) {
    if (file == nullptr) continue;
    PayloadScan scan;
    scan.chunk = [this, segment = segment](const PayloadChunk& chunk, uint64_t offset) {
      return TakeChunk(chunk, segment, offset);
    };
    // `deja verify` says what is damaged; who asks for such a payload is told that it is not there.
    scan.damage = [](const FrameResult&) {};
    (void)ScanPayloadFile(*file, scan);
  }
}

Status PayloadTable::TakeIndexed(const PayloadInfo& info) const {
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
  Entry& entry = entries_[info.hash];
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

Status PayloadTable::TakeIndexedPieces(const PayloadPieces& info) const {
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
    PayloadChunk chunk;
    chunk.hash = info.hash;
    chunk.total_size = info.total_size;
    chunk.offset = info.starts[i];
    chunk.size = info.sizes[i];
    if (info.chunk_offsets[i] == 0 || info.chunk_offsets[i] >= file_bytes) {
      return bad("chunks outside");
    }
    if (chunk.size > kPayloadChunkBytes || chunk.offset > chunk.total_size ||
        chunk.size > chunk.total_size - chunk.offset) {
      return bad("a chunk lies outside of its payload");
    }
    if (!TakeChunk(chunk, info.segment, info.chunk_offsets[i])) return bad("listed twice");
  }
  return {};
}

uint64_t PayloadTable::FileBytes(uint32_t segment) const {
  const auto file = files_.find(segment);
  return file == files_.end() || file->second == nullptr ? 0 : file->second->size();
}

bool PayloadTable::AddPiece(const Hash128& hash, uint64_t total_size, const Piece& piece) const {
  Entry& entry = entries_[hash];
  if (entry.pieces.empty()) entry.total_size = total_size;
  if (entry.total_size != total_size || entry.indexed) return false;
  entry.pieces.push_back(piece);
  return true;
}

bool PayloadTable::TakeChunk(const PayloadChunk& chunk, uint32_t segment, uint64_t offset) const {
  Piece piece;
  piece.offset = chunk.offset;
  piece.size = chunk.size;
  piece.frame = offset;
  piece.segment = segment;
  return AddPiece(chunk.hash, chunk.total_size, piece);
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
  return AddPiece(part.hash, part.total_size, piece);
}

bool PayloadTable::Complete(const Entry& entry) {
  if (entry.indexed) return true;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  ranges.reserve(entry.pieces.size());
  for (const Piece& piece : entry.pieces) ranges.emplace_back(piece.offset, piece.size);
  std::sort(ranges.begin(), ranges.end());
  uint64_t done = 0;
  for (const auto& [offset, size] : ranges) {
    if (offset > done) return false;
    done = std::max(done, offset + size);
  }
  return done == entry.total_size;
}

std::optional<PayloadTable::Entry> PayloadTable::Copy(const Hash128& hash) const {
  const Reading reading(*this);
  const Entry* entry = Find(hash);
  return entry == nullptr ? std::nullopt : std::optional(*entry);
}

std::optional<PayloadTable::Part> PayloadTable::PartOf(const Hash128& hash) const {
  const Reading reading(*this);
  const Entry* entry = Find(hash);
  if (entry == nullptr) return std::nullopt;
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

std::vector<Hash128> PayloadTable::Partial() const {
  const Reading reading(*this);
  FindAll();
  std::vector<Hash128> list;
  for (const auto& [hash, entry] : entries_) {
    if (!Complete(entry)) list.push_back(hash);
  }
  std::sort(list.begin(), list.end());
  return list;
}

std::optional<uint64_t> PayloadTable::Size(const Hash128& hash) const {
  const Reading reading(*this);
  const Entry* entry = Find(hash);
  if (entry == nullptr || !Complete(*entry)) return std::nullopt;
  return entry->total_size;
}

std::vector<PayloadInfo> PayloadTable::List() const {
  const Reading reading(*this);
  FindAll();
  std::vector<PayloadInfo> list;
  for (const auto& [hash, entry] : entries_) {
    if (!Complete(entry)) continue;
    PayloadInfo info;
    info.hash = hash;
    info.total_size = entry.total_size;
    for (const Piece& piece : entry.pieces) {
      if (piece.part == nullptr) info.chunk_offsets.push_back(piece.frame);
      if (piece.part == nullptr && info.chunk_offsets.size() == 1) info.segment = piece.segment;
    }
    list.push_back(std::move(info));
  }
  std::sort(list.begin(), list.end(),
            [](const PayloadInfo& a, const PayloadInfo& b) { return a.hash < b.hash; });
  return list;
}

uint64_t PayloadTable::complete() const {
  const Reading reading(*this);
  FindAll();
  uint64_t count = 0;
  for (const auto& [hash, entry] : entries_) count += Complete(entry) ? 1 : 0;
  return count;
}

uint64_t PayloadTable::complete_bytes() const {
  const Reading reading(*this);
  FindAll();
  uint64_t bytes = 0;
  for (const auto& [hash, entry] : entries_) bytes += Complete(entry) ? entry.total_size : 0;
  return bytes;
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
  std::vector<std::byte> decoded;
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
  std::vector<std::byte> frame;
  PayloadChunk chunk;
  DEJA_RETURN_IF_ERROR(ReadChunk(hash, total_size, piece, frame, chunk));
  decoded.resize(static_cast<size_t>(chunk.size));
  DEJA_RETURN_IF_ERROR(ChunkReader(*files_.at(piece.segment)).Decode(chunk, piece.frame, decoded));
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
