// PayloadTable: which pieces of which payloads a rank has, and putting them together.
//
// Pieces come from the chunks of the payload file (through the index or a scan) and from the tail.
// They may overlap, be cut anywhere and be incomplete. What an index has in blocks is taken from it
// when it is asked for; an index that turns out wrong is replaced by what the payload files hold.
// Borrows the files and the tail. Filling it is for one thread; afterwards const functions may be
// called by several.
#ifndef DEJA_FORMAT_READER_PAYLOAD_TABLE_H_
#define DEJA_FORMAT_READER_PAYLOAD_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/ids.h"
#include "common/os/file.h"
#include "common/result.h"
#include "common/runtime/futex.h"
#include "format/reader/payload_index.h"
#include "format/tail/tail_reader.h"
#include "format/wire/messages.h"

namespace deja::format {

class PayloadTable {
 public:
  // The payload file of a segment.
  void AddFile(uint32_t segment, const ReadFile* file) { files_[segment] = file; }
  void SetTail(const TailReader* tail) { tail_ = tail; }

  // From an index. False: it has an entry that cannot be and would make a caller allocate for
  // nothing.
  bool AddIndexed(const Index& index) { return TakeIndexed(index); }
  // From now on, what this index has. Borrows the file that it reads.
  void SetIndex(std::unique_ptr<PayloadIndex> index);
  // From a scan: the chunk in the frame at `offset` of a segment's file. False if it contradicts
  // what is known.
  bool AddChunk(const PayloadChunk& chunk, uint32_t segment, uint64_t offset) {
    return TakeChunk(chunk, segment, offset);
  }
  bool AddTailPart(const TailPayload& part);

  // What of `hash` is here: its size as far as this table knows it, and ranges of its bytes.
  // Nothing if there is none of it.
  struct Part {
    uint64_t total_size = 0;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;  // offset and size, in any order
  };
  [[nodiscard]] std::optional<Part> PartOf(const Hash128& hash) const;
  // Payloads that are here in part, and the bytes of these parts.
  [[nodiscard]] std::vector<Hash128> Partial() const;

  // Size of a payload all of whose bytes are there.
  [[nodiscard]] std::optional<uint64_t> Size(const Hash128& hash) const;
  // Width of its elements, as the chunk that comes first says it; nothing if there is none.
  [[nodiscard]] std::optional<uint32_t> ElementSize(const Hash128& hash) const;
  // Complete ones, by hash.
  [[nodiscard]] std::vector<PayloadInfo> List() const;
  [[nodiscard]] uint64_t complete() const;
  [[nodiscard]] uint64_t complete_bytes() const;

  // Hands the payload's bytes to `sink`, in order, at most a chunk at a time, and compares its hash
  // at the end: kCorrupt if it differs. kNotFound if it is not (wholly) there.
  Status Stream(const Hash128& hash,
                const std::function<void(std::span<const std::byte>)>& sink) const;
  // Hands each piece of a payload that is here in part to `sink`: the payload's size, the piece's
  // offset, its bytes. Goes on after pieces that cannot be read and returns the first error.
  using PieceSink = std::function<void(uint64_t, uint64_t, std::span<const std::byte>)>;
  Status ReadPieces(const Hash128& hash, const PieceSink& sink) const;
  // Stream for a payload of which several tables have pieces.
  static Status StreamTogether(const Hash128& hash, std::span<const PayloadTable* const> tables,
                               const std::function<void(std::span<const std::byte>)>& sink);

 private:
  static constexpr uint64_t kUnknownSize = ~uint64_t{0};
  struct Piece {
    uint64_t offset = 0;  // in the payload
    uint64_t size = kUnknownSize;
    uint64_t frame = 0;                 // in the payload file
    uint32_t segment = 0;               // of that file
    const TailPayload* part = nullptr;  // or this part of the tail
  };
  struct Entry {
    uint64_t total_size = 0;
    bool indexed = false;  // pieces are whole, in order, their sizes unknown until read
    std::vector<Piece> pieces;
  };
  struct HashOfHash {
    size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.Prefix()); }
  };
  struct ByNeed {
    FutexMutex mutex;                     // guards the index, and the entries
    std::unique_ptr<PayloadIndex> index;  // null: all of it is in the entries, or it was wrong
  };
  // While entries can come to be, nobody else looks at them.
  class Reading {
   public:
    explicit Reading(const PayloadTable& table) : by_need_(table.by_need_.get()) {
      if (by_need_ != nullptr) by_need_->mutex.lock();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() {
      if (by_need_ != nullptr) by_need_->mutex.unlock();
    }

   private:
    ByNeed* by_need_;
  };

  [[nodiscard]] std::optional<Entry> Copy(const Hash128& hash) const;
  // These need a Reading. Null: there is no such payload.
  const Entry* Find(const Hash128& hash) const;
  void FindAll() const;
  // The index was wrong.
  void FillFromFiles() const;

  bool TakeIndexed(const Index& index) const;
  Status TakeIndexed(const PayloadInfo& info) const;
  Status TakeIndexedPieces(const PayloadPieces& info) const;
  bool TakeChunk(const PayloadChunk& chunk, uint32_t segment, uint64_t offset) const;

  struct Sourced {
    const PayloadTable* table;
    Piece piece;
  };
  // The chunk in the payload file; its data points into `frame`.
  Status ReadChunk(const Hash128& hash, uint64_t total_size, const Piece& piece,
                   std::vector<std::byte>& frame, PayloadChunk& chunk) const;
  // The bytes of a piece, at most a chunk at a time, each with its offset in the payload.
  Status ReadPiece(const Hash128& hash, uint64_t total_size, const Piece& piece, uint64_t skip_to,
                   const std::function<void(uint64_t, std::span<const std::byte>)>& sink) const;
  static Status StreamPieces(const Hash128& hash, uint64_t total_size,
                             std::span<const Sourced> pieces,
                             const std::function<void(std::span<const std::byte>)>& sink);
  static bool Complete(const Entry& entry);
  bool AddPiece(const Hash128& hash, uint64_t total_size, const Piece& piece) const;

  [[nodiscard]] uint64_t FileBytes(uint32_t segment) const;

  std::map<uint32_t, const ReadFile*> files_;  // by segment
  const TailReader* tail_ = nullptr;
  std::unique_ptr<ByNeed> by_need_;  // null: all of it is in entries_
  mutable std::unordered_map<Hash128, Entry, HashOfHash> entries_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_PAYLOAD_TABLE_H_
