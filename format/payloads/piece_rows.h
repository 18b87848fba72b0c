// PieceRows: the pieces of more payloads than memory should hold, by hash.
//
// What a scan has found, in a temporary file (sorted_rows.h). Fill it, call Sort, then read; one
// thread at a time.
#ifndef DEJA_FORMAT_PAYLOADS_PIECE_ROWS_H_
#define DEJA_FORMAT_PAYLOADS_PIECE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "common/ids.h"
#include "common/result.h"
#include "format/payloads/payload_entries.h"
#include "format/payloads/sorted_rows.h"

namespace deja::format {

class PieceRows {
 public:
  static constexpr size_t kMostInMemory = size_t{1} << 15;
  explicit PieceRows(size_t most_in_memory = kMostInMemory, std::string folder = {})
      : rows_(most_in_memory, std::move(folder)) {}

  // A piece in a payload file.
  void Add(const Hash128& hash, uint64_t total_size, const PayloadPiece& piece) {
    rows_.Add({hash, piece.segment, 0, piece.frame, total_size, piece.offset, piece.size});
  }
  Status Sort() { return rows_.Sort(); }

  [[nodiscard]] size_t size() const { return rows_.size(); }
  // The payload whose rows begin at `at`; `at` is then after them. Pieces that contradict the
  // first one's size are left out. False: there is none, or it cannot be read.
  bool Next(size_t& at, Hash128& hash, PayloadEntry& entry) const;
  // Where the rows of the first payload after `hash` begin.
  [[nodiscard]] size_t Behind(const Hash128& hash) const;
  // Adds what is known of `hash`. False: there is nothing.
  bool Find(const Hash128& hash, PayloadEntry& entry) const;

 private:
  struct Row {
    Hash128 hash;
    uint32_t segment = 0;
    uint32_t unused = 0;
    uint64_t frame = 0;
    uint64_t total_size = 0;
    uint64_t offset = 0;
    uint64_t size = 0;

    friend auto operator<=>(const Row&, const Row&) = default;
  };
  SortedRows<Row> rows_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_PIECE_ROWS_H_
