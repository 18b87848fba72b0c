// SortedRows: very many rows in their order, in little memory.
//
// Rows that are more than `most_in_memory` are sorted some at a time into a temporary file (in
// `folder`, or where such files belong; common/os/unnamed_file.h), which is then merged into
// another one; a directory of that file's blocks stays in memory (a two-hundred-and-fiftieth of
// it). Where no such file can be made or filled, all stays in memory.
//
// Row: trivially copyable, with operator<=>. Fill it, call Sort, then read. One thread at a time,
// reading too: the block that was read last is kept.
#ifndef DEJA_FORMAT_PAYLOADS_SORTED_ROWS_H_
#define DEJA_FORMAT_PAYLOADS_SORTED_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/os/unnamed_file.h"
#include "common/result.h"

namespace deja::format {

template <typename Row>
class SortedRows {
  static_assert(std::is_trivially_copyable_v<Row>);

 public:
  explicit SortedRows(size_t most_in_memory = size_t{1} << 15, std::string folder = {})
      : most_in_memory_(std::max<size_t>(most_in_memory, 1)), folder_(std::move(folder)) {}

  // Adds a row, in any order.
  void Add(const Row& row) {
    rows_.push_back(row);
    if (rows_.size() >= most_in_memory_ && !no_file_) WriteRun();
  }

  // To be called when all have been added, before what follows. An error: rows that were in the
  // file could not be read back.
  Status Sort() {
    std::sort(rows_.begin(), rows_.end());
    if (runs_.empty()) return {};
    auto merged = UnnamedFile::Make(folder_);
    if (merged && Merge(**merged)) {
      file_ = std::move(*merged);
      rows_ = {};
      runs_.clear();
      return {};
    }
    return ReadBack();
  }

  [[nodiscard]] size_t size() const { return file_ == nullptr ? rows_.size() : in_file_; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  // False: it cannot be read (any more).
  bool At(size_t index, Row& row) const {
    if (file_ == nullptr) {
      row = rows_[index];
      return true;
    }
    if (!Load(index / kBlockRows)) return false;
    row = block_[index % kBlockRows];
    return true;
  }
  // The first row that is not less than `row`.
  [[nodiscard]] size_t LowerBound(const Row& row) const {
    if (file_ == nullptr)
      return static_cast<size_t>(std::lower_bound(rows_.begin(), rows_.end(), row) - rows_.begin());
    const auto behind = std::lower_bound(first_rows_.begin(), first_rows_.end(), row);
    if (behind == first_rows_.begin()) return 0;
    const auto block = static_cast<size_t>(behind - first_rows_.begin()) - 1;
    if (!Load(block)) return in_file_;
    return block * kBlockRows +
           static_cast<size_t>(std::lower_bound(block_.begin(), block_.end(), row) -
                               block_.begin());
  }

 private:
  static constexpr size_t kBlockRows = 256;
  struct Run {
    uint64_t offset = 0;
    size_t rows = 0;
  };
  // The part of a run that is in memory while runs are merged.
  struct Source {
    Run left;
    std::vector<Row> rows;
    size_t next = 0;
  };

  static std::span<const std::byte> BytesOf(const std::vector<Row>& rows) {
    return std::as_bytes(std::span(rows));
  }

  void WriteRun() {
    std::sort(rows_.begin(), rows_.end());
    if (file_ == nullptr) {
      auto file = UnnamedFile::Make(folder_);
      if (file) file_ = std::move(*file);
    }
    const uint64_t offset = file_ == nullptr ? 0 : file_->size();
    if (file_ == nullptr || !file_->Append(BytesOf(rows_))) {
      no_file_ = true;  // the rows stay where they are
      return;
    }
    runs_.push_back({offset, rows_.size()});
    rows_.clear();
  }

  // False: a file could not be read or written.
  bool Merge(UnnamedFile& out) {
    constexpr size_t kMemory = size_t{8} << 20;
    const size_t each =
        std::clamp<size_t>(kMemory / sizeof(Row) / runs_.size(), 16, most_in_memory_ + 16);
    std::vector<Source> sources(runs_.size() + 1);
    for (size_t i = 0; i < runs_.size(); ++i) sources[i].left = runs_[i];
    sources.back().rows = rows_;  // what no run has
    using Head = std::pair<Row, size_t>;
    const auto later = [](const Head& a, const Head& b) {
      return b.first < a.first || (!(a.first < b.first) && b.second < a.second);
    };
    std::priority_queue<Head, std::vector<Head>, decltype(later)> heads(later);
    const auto push = [&](size_t source) {
      Source& from = sources[source];
      if (from.next == from.rows.size() && !Refill(from, each)) return false;
      if (from.next < from.rows.size()) heads.push({from.rows[from.next++], source});
      return true;
    };
    for (size_t i = 0; i < sources.size(); ++i)
      if (!push(i)) return false;
    std::vector<Row> block;
    in_file_ = 0;
    first_rows_.clear();
    while (!heads.empty()) {
      const auto [row, source] = heads.top();
      heads.pop();
      if (block.empty()) first_rows_.push_back(row);
      block.push_back(row);
      ++in_file_;
      if (!push(source)) return false;
      if (block.size() < kBlockRows && !heads.empty()) continue;
      if (!out.Append(BytesOf(block))) return false;
      block.clear();
    }
    return true;
  }

  bool Refill(Source& source, size_t most) {
    source.rows.resize(std::min(most, source.left.rows));
    source.next = 0;
    if (source.rows.empty()) return true;
    if (!file_->ReadAt(source.left.offset, std::as_writable_bytes(std::span(source.rows))))
      return false;
    source.left.offset += source.rows.size() * sizeof(Row);
    source.left.rows -= source.rows.size();
    return true;
  }

  // All of it into memory.
  Status ReadBack() {
    const size_t bytes = static_cast<size_t>(file_->size());
    const size_t have = rows_.size();
    rows_.resize(have + bytes / sizeof(Row));
    Status read = file_->ReadAt(0, std::as_writable_bytes(std::span(rows_).subspan(have)));
    file_ = nullptr;
    runs_.clear();
    if (!read) rows_.resize(have);
    std::sort(rows_.begin(), rows_.end());
    return read;
  }

  bool Load(size_t block) const {
    if (block == loaded_) return true;
    const size_t first = block * kBlockRows;
    block_.resize(std::min(kBlockRows, in_file_ - first));
    loaded_ = block;
    if (file_->ReadAt(first * sizeof(Row), std::as_writable_bytes(std::span(block_)))) return true;
    loaded_ = kNone;
    block_.clear();
    return false;
  }

  static constexpr size_t kNone = ~size_t{0};
  size_t most_in_memory_;
  std::string folder_;
  bool no_file_ = false;
  std::vector<Row> rows_;              // not in the file
  std::unique_ptr<UnnamedFile> file_;  // of runs, then of all rows
  std::vector<Run> runs_;
  size_t in_file_ = 0;
  std::vector<Row> first_rows_;  // of each block
  mutable std::vector<Row> block_;
  mutable size_t loaded_ = kNone;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_SORTED_ROWS_H_
