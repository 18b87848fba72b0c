// ReferredPayloads: which payloads the events of a rank refer to, and which of these have not been
// found.
//
// One thread. Memory: 20 bytes a payload, three times that while references come in.
#ifndef DEJA_FORMAT_TRACE_REFERRED_PAYLOADS_H_
#define DEJA_FORMAT_TRACE_REFERRED_PAYLOADS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "format/trace/payload_uses.h"

namespace deja::format {

class ReferredPayloads {
 public:
  // Adds a reference; duplicates are removed now and then, to keep memory bounded.
  void Add(const PayloadReference& payload) {
    rows_.push_back({payload.hash, payload.segment});
    if (rows_.size() >= next_settling_) Settle();
  }
  // To be called when all have been added, before what follows.
  void Settle() {
    // The latest reference of each counts: it has its bytes kept the longest.
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      return a.hash != b.hash ? a.hash < b.hash : a.segment > b.segment;
    });
    rows_.erase(std::unique(rows_.begin(), rows_.end(),
                            [](const Row& a, const Row& b) { return a.hash == b.hash; }),
                rows_.end());
    erased_.assign(rows_.size(), false);
    left_ = rows_.size();
    next_settling_ = std::max(kFew, 2 * rows_.size());
  }

  // Those that have not been erased.
  [[nodiscard]] size_t size() const { return left_; }
  void Erase(const Hash128& hash) {
    const auto row =
        std::lower_bound(rows_.begin(), rows_.end(), hash,
                         [](const Row& a, const Hash128& wanted) { return a.hash < wanted; });
    if (row != rows_.end() && row->hash == hash) EraseAt(static_cast<size_t>(row - rows_.begin()));
  }
  // `is_gone(hash, last segment that events name)`.
  template <typename IsGone>
  void EraseIf(IsGone is_gone) {
    for (size_t i = 0; i < rows_.size(); ++i)
      if (!erased_[i] && is_gone(rows_[i].hash, rows_[i].segment)) EraseAt(i);
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t i = 0; i < rows_.size(); ++i)
      if (!erased_[i]) visit(rows_[i].hash);
  }

 private:
  static constexpr size_t kFew = 1 << 16;
  struct Row {
    Hash128 hash;
    uint32_t segment = 0;
  };

  void EraseAt(size_t row) {
    if (erased_[row]) return;
    erased_[row] = true;
    --left_;
  }

  std::vector<Row> rows_;
  std::vector<bool> erased_;
  size_t left_ = 0;
  size_t next_settling_ = kFew;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_REFERRED_PAYLOADS_H_
