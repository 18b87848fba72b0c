// PayloadEntries: the pieces of very many payloads, by hash.
//
// A long unfinished recording has an entry for each of its payloads in memory. So an entry is small
// (some 70 bytes for a payload of one piece), and none moves when there are more.
//
// Filling it is for one thread; afterwards const functions may be called by several.
#ifndef DEJA_FORMAT_PAYLOADS_PAYLOAD_ENTRIES_H_
#define DEJA_FORMAT_PAYLOADS_PAYLOAD_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/ids.h"
#include "format/tail/tail_reader.h"

namespace deja::format {

struct PayloadPiece {
  static constexpr uint64_t kUnknownSize = ~uint64_t{0};

  uint64_t offset = 0;  // in the payload
  uint64_t size = kUnknownSize;
  uint64_t frame = 0;                 // in the payload file
  uint32_t segment = 0;               // of that file
  const TailPayload* part = nullptr;  // or this part of the tail
};

struct PayloadEntry {
  uint64_t total_size = 0;
  bool indexed = false;  // pieces are whole, in order, their sizes unknown until read
  std::vector<PayloadPiece> pieces;

  // All bytes are there.
  [[nodiscard]] bool Complete() const;
  // False: it contradicts what is known.
  bool Add(uint64_t of_size, const PayloadPiece& piece);
};

class PayloadEntries {
 public:
  [[nodiscard]] size_t size() const { return entries_.size(); }
  // Removes all entries.
  void Clear();

  // False: there is none.
  bool Find(const Hash128& hash, PayloadEntry& entry) const;
  // In the order in which they were added first.
  [[nodiscard]] const Hash128& HashAt(size_t index) const { return entries_[index].hash; }
  [[nodiscard]] PayloadEntry At(size_t index) const;
  // As PayloadEntry::Add, of a new entry, too.
  bool Add(const Hash128& hash, uint64_t total_size, const PayloadPiece& piece);
  // Instead of what it was.
  void Set(const Hash128& hash, const PayloadEntry& entry);

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  struct Small {
    Hash128 hash;
    uint64_t total_size = 0;
    // The first piece's; its part of the tail instead of `frame`.
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t frame = 0;
    uint32_t segment = 0;
    uint32_t more = kNone;  // in more_: pieces after the first
    bool indexed = false;
    bool has_piece = false;
    bool in_tail = false;
  };

  [[nodiscard]] size_t PlaceOf(const Hash128& hash) const;
  Small& Make(const Hash128& hash);
  void Grow();
  void Append(Small& small, const PayloadPiece& piece);

  // Key of the table's order. The hashes are a trace's, and the author of a trace must not know
  // which collide.
  uint64_t secret_ = reinterpret_cast<uintptr_t>(this);
  std::deque<Small> entries_;
  std::vector<std::vector<PayloadPiece>> more_;
  std::vector<uint32_t> table_;  // open addressing; at most half full
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_PAYLOAD_ENTRIES_H_
