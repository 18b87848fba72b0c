// BatchList: what is known of each event batch of a rank, by its number.
//
// All of it is in memory, or it is read from the index block by block as it is asked for. A long
// recording has very many batches, and a reader that wants its end needs few of them. A directory
// says what is in each block that is not read. The index is a hint: a block that cannot be read is
// made again from its batches.
//
// Borrows the file. Const functions may be called by several threads; what they return lives as
// long as the list.
#ifndef DEJA_FORMAT_READER_BATCH_LIST_H_
#define DEJA_FORMAT_READER_BATCH_LIST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "common/os/file.h"
#include "common/runtime/futex.h"
#include "format/wire/frame_reader.h"
#include "format/wire/messages.h"

namespace deja::format {

class BatchList {
 public:
  BatchList() = default;
  explicit BatchList(std::vector<BatchInfo> batches) : in_memory_(std::move(batches)) {}

  void Add(BatchInfo batch) { in_memory_.push_back(std::move(batch)); }
  // From now on the batches are those of the blocks. False, and nothing changed, if they are not in
  // order, or out of place. Their frames must be within [from, to) of the file and their batches
  // before that. `budget`: as for DecodeWithin, of one block.
  bool SetBlocks(const ReadFile& file, std::vector<BatchBlock> blocks, uint64_t from, uint64_t to,
                 size_t budget);

  [[nodiscard]] size_t size() const {
    return by_need_ == nullptr ? in_memory_.size() : by_need_->size;
  }
  [[nodiscard]] bool empty() const { return size() == 0; }
  // Reads its block.
  [[nodiscard]] const BatchInfo& operator[](size_t batch) const;
  [[nodiscard]] const BatchInfo& back() const { return (*this)[size() - 1]; }

  // What the batches from `batch` on are together, if a block begins with it: `end` is the one
  // after them. Null if none does, or all is in memory.
  const BatchBlock* BlockAt(size_t batch, size_t& end) const;

  using MayHold = std::function<bool(const BatchBlock&)>;
  using Holds = std::function<bool(const BatchInfo&)>;
  // The first batch in [from, end) of which `holds` is true, or `end`. Blocks of which `may_hold`
  // is false are not read.
  [[nodiscard]] size_t Find(size_t from, size_t end, const MayHold& may_hold,
                            const Holds& holds) const;
  // The last batch before `end`; size() if there is none.
  [[nodiscard]] size_t FindLast(size_t end, const MayHold& may_hold, const Holds& holds) const;
  // Find for events of these kinds (KindBit). Batches from the tail may have any.
  [[nodiscard]] size_t FindKinds(size_t from, size_t end, uint64_t kinds) const;
  // The first batch in which the step begins, resp. in whose range the operation is; size() if
  // there is none. `comm`: number + 1.
  [[nodiscard]] size_t FindStep(uint64_t step) const;
  [[nodiscard]] size_t FindOperation(uint32_t comm, uint64_t seq) const;

  // Goes through the batches in their order.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = BatchInfo;
    using difference_type = std::ptrdiff_t;
    using pointer = const BatchInfo*;
    using reference = const BatchInfo&;
    Iterator() = default;
    Iterator(const BatchList* list, size_t at) : list_(list), at_(at) {}
    reference operator*() const { return (*list_)[at_]; }
    pointer operator->() const { return &(*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return {list_, at_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const BatchList* list_ = nullptr;
    size_t at_ = 0;
  };
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, size()}; }

 private:
  struct Block {
    BatchBlock facts;
    size_t first = 0;  // number of its first batch
    bool is_read = false;
    std::vector<BatchInfo> batches;
  };
  struct ByNeed {
    explicit ByNeed(const ReadFile& read) : file(read), reader(read) {}
    const ReadFile& file;
    size_t size = 0;
    size_t budget = 0;
    FutexMutex mutex;  // guards what follows, but for each block's facts
    FrameReader reader;
    std::vector<Block> blocks;
    std::vector<std::byte> payload;
  };

  [[nodiscard]] Block& BlockOf(size_t batch) const;
  // These need the mutex.
  static void Read(ByNeed& by_need, Block& block);
  static bool TakeIndexed(ByNeed& by_need, Block& block);
  static void Scan(ByNeed& by_need, Block& block);

  std::vector<BatchInfo> in_memory_;
  std::unique_ptr<ByNeed> by_need_;  // null: all are in memory
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_BATCH_LIST_H_
