// PayloadTable: which pieces of which payloads a rank has, and putting them together.
//
// Pieces come from the chunks of the payload file (through the index or a scan) and from the tail.
// They may overlap, be cut anywhere and be incomplete. What an index has in blocks is taken from it
// when it is asked for, and not kept; an index that turns out wrong is replaced by what the payload
// files hold.
// Borrows the files and the tail. Filling it is for one thread; afterwards const functions may be
// called by several.
#ifndef DEJA_FORMAT_PAYLOADS_PAYLOAD_TABLE_H_
#define DEJA_FORMAT_PAYLOADS_PAYLOAD_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/os/file.h"
#include "common/result.h"
#include "common/runtime/futex.h"
#include "format/payloads/payload_entries.h"
#include "format/payloads/payload_index.h"
#include "format/payloads/piece_rows.h"
#include "format/payloads/predicted_states.h"
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
  bool AddIndexed(const Index& index);
  // From now on, what this index has. Borrows the file that it reads.
  void SetIndex(std::unique_ptr<PayloadIndex> index);
  // What a scan finds of more payloads than this goes into a temporary file (PieceRows).
  void SpillBeyond(size_t payloads, std::string folder) {
    most_in_memory_ = payloads;
    spill_folder_ = std::move(folder);
  }
  // From a scan: the chunk in the frame at `offset` of a segment's file. False if it contradicts
  // what is known.
  bool AddChunk(const PayloadChunk& chunk, uint32_t segment, uint64_t offset);
  // When the scan has ended, before anything is asked.
  Status EndChunks();
  bool AddTailPart(const TailPayload& part);

  // What of `hash` is here: its size as far as this table knows it, and ranges of its bytes.
  // Nothing if there is none of it.
  struct Part {
    uint64_t total_size = 0;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;  // offset and size, in any order
  };
  // Nothing if there is none of it here.
  [[nodiscard]] std::optional<Part> PartOf(const Hash128& hash) const;

  // Size of a payload all of whose bytes are there.
  [[nodiscard]] std::optional<uint64_t> Size(const Hash128& hash) const;
  // Width of its elements, as the chunk that comes first says it; nothing if there is none.
  [[nodiscard]] std::optional<uint32_t> ElementSize(const Hash128& hash) const;
  // Complete ones, by hash.
  [[nodiscard]] std::vector<PayloadInfo> List() const;
  // The same for tables of very many, some at a time: `list` is some of those after `last` (at
  // first: nothing), perhaps none. False at the end.
  bool ListAfter(std::optional<Hash128>& last, std::vector<PayloadInfo>& list) const;
  // Payloads that are here in part.
  [[nodiscard]] std::vector<Hash128> Partial() const;
  struct Counts {
    uint64_t complete = 0;
    uint64_t complete_bytes = 0;
    uint64_t partial = 0;
    uint64_t partial_bytes = 0;  // of the parts that are there
  };
  // Counts all payloads: reads the whole table.
  [[nodiscard]] Counts Count() const;

  // Hands the payload's bytes to `sink`, in order, at most a chunk at a time. Compares its hash at
  // the end: kCorrupt if it differs. kNotFound if it is not (wholly) there.
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
  static constexpr uint64_t kUnknownSize = PayloadPiece::kUnknownSize;
  using Piece = PayloadPiece;
  using Entry = PayloadEntry;
  struct ByNeed {
    FutexMutex mutex;                     // guards what follows, and the entries
    std::unique_ptr<PayloadIndex> index;  // null: all of it is in the entries, or it was wrong
    std::vector<uint32_t> by_hash;        // the entries; when they were asked for so
  };
  // While entries can be added, no other thread looks at them.
  class Reading {
   public:
    explicit Reading(const PayloadTable& table) : by_need_(*table.by_need_) {
      by_need_.mutex.lock();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { by_need_.mutex.unlock(); }

   private:
    ByNeed& by_need_;
  };

  static Piece PieceOf(const PayloadChunk& chunk, uint32_t segment, uint64_t offset) {
    Piece piece;
    piece.offset = chunk.offset;
    piece.size = chunk.size;
    piece.frame = offset;
    piece.segment = segment;
    return piece;
  }
  [[nodiscard]] std::optional<Entry> Copy(const Hash128& hash) const;
  // These need a Reading. False: there is no such payload.
  bool Find(const Hash128& hash, Entry& entry) const;
  using Some = std::vector<std::pair<Hash128, Entry>>;
  // Some of those after `last`, complete or not; false at the end.
  bool SomeAfter(std::optional<Hash128>& last, Some& some) const;
  enum class Answer { kSome, kEnd, kDamaged };
  Answer SomeIndexedAfter(std::optional<Hash128>& last, Some& some) const;
  bool SomeEntriesAfter(std::optional<Hash128>& last, Some& some) const;
  bool SomeSpilledAfter(std::optional<Hash128>& last, Some& some) const;
  void AddEntriesUpTo(const Hash128* end, const std::optional<Hash128>& last, Some& some) const;
  void SortEntries() const;
  void Spill();
  template <typename Visit>
  void ForEach(Visit visit) const;
  // The index was wrong.
  void FillFromFiles() const;

  Status TakeIndexed(const PayloadInfo& info, Entry& entry) const;
  // `add` gets each piece; false: it contradicts what is known.
  template <typename Add>
  Status TakeIndexedPieces(const PayloadPieces& info, Add add) const;
  // What the index says of one payload. False: it cannot be.
  bool TakeAll(const Index& index, Entry& entry) const;

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
  [[nodiscard]] uint64_t FileBytes(uint32_t segment) const;

  std::map<uint32_t, const ReadFile*> files_;  // by segment
  const TailReader* tail_ = nullptr;
  std::unique_ptr<ByNeed> by_need_ = std::make_unique<ByNeed>();
  std::unique_ptr<PredictedStates> states_ = std::make_unique<PredictedStates>();
  mutable PayloadEntries entries_;
  size_t most_in_memory_ = ~size_t{0};
  std::string spill_folder_;
  std::unique_ptr<PieceRows> spilled_;  // not null: the pieces in files are here
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_PAYLOAD_TABLE_H_
