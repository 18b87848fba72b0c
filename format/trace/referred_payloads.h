// ReferredPayloads: which payloads the events of a rank refer to, and which of these have not been
// found.
//
// One thread. Memory: a megabyte, and a bit for each reference; the references are in a temporary file
// where there are very many.
#ifndef DEJA_FORMAT_TRACE_REFERRED_PAYLOADS_H_
#define DEJA_FORMAT_TRACE_REFERRED_PAYLOADS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "format/payloads/sorted_rows.h"
#include "format/trace/payload_uses.h"

namespace deja::format {

class ReferredPayloads {
 public:
  void Add(const PayloadReference& payload) { rows_.Add({payload.hash, ~payload.segment}); }
  // To be called when all have been added, before what follows.
  Status Settle() {
    DEJA_RETURN_IF_ERROR(rows_.Sort());
    erased_.assign(rows_.size(), false);
    left_ = 0;
    ForEachRow([&](size_t, const Row&) { ++left_; });
    return {};
  }

  // Those that have not been erased.
  [[nodiscard]] size_t size() const { return left_; }
  // Fast where hashes are erased in their order.
  void Erase(const Hash128& hash) {
    const size_t at = rows_.LowerBound({hash, 0});
    Row row;
    if (at < rows_.size() && rows_.At(at, row) && row.hash == hash) EraseAt(at);
  }
  // `is_gone(hash, last segment that events name)`.
  template <typename IsGone>
  void EraseIf(IsGone is_gone) {
    ForEachRow([&](size_t at, const Row& row) {
      if (is_gone(row.hash, ~row.inverse_segment)) EraseAt(at);
    });
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    ForEachRow([&](size_t, const Row& row) { visit(row.hash); });
  }

 private:
  // The latest reference of each payload comes first, and counts: it has the bytes kept the longest.
  struct Row {
    Hash128 hash;
    uint32_t inverse_segment = 0;

    friend auto operator<=>(const Row&, const Row&) = default;
  };

  // The first row of each payload that has not been erased.
  template <typename Visit>
  void ForEachRow(Visit visit) const {
    Row row;
    Hash128 before;
    for (size_t at = 0; at < rows_.size() && rows_.At(at, row); ++at) {
      const bool is_first = at == 0 || row.hash != before;
      before = row.hash;
      if (is_first && !erased_[at]) visit(at, row);
    }
  }
  void EraseAt(size_t row) {
    if (erased_[row]) return;
    erased_[row] = true;
    --left_;
  }

  SortedRows<Row> rows_;
  std::vector<bool> erased_;
  size_t left_ = 0;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_REFERRED_PAYLOADS_H_
