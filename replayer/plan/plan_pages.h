// PlanPages: the arguments and tensors of recorded calls, read again from the trace when they are
// asked for.
//
// A long recording has millions of calls, and each of them takes some hundred bytes with its
// digests. So a plan notes where they are, as if all of a recording's were in two rows, of words
// and of tensors. A page is what one batch of events has. It is decoded when one of its elements is
// asked for. A program makes its calls much in their recorded order, so that few pages are enough.
//
// Owner: the plan; borrows the reader. Filling it is for one thread; afterwards any thread may call
// const functions. Memory: the pages that were used last, some bytes a batch, and what was kept.
#ifndef DEJA_REPLAYER_PLAN_PLAN_PAGES_H_
#define DEJA_REPLAYER_PLAN_PLAN_PAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/runtime/futex.h"
#include "format/reader/rank_reader.h"
#include "format/wire/messages.h"

namespace deja::replayer {

// Where a run of elements lies in one of the plan's pools.
struct PoolRange {
  uint32_t at = 0;
  uint32_t size = 0;
};

class PlanPages {
 public:
  explicit PlanPages(const format::RankReader& reader) : reader_(reader) {}

  // What follows are the events of this batch, all that are of calls.
  void BeginBatch(size_t batch);
  // Takes note of an event. False: there are more than can be numbered.
  bool Count(const format::Event& event);
  // The ranges of the event that was counted last.
  [[nodiscard]] PoolRange words() const { return words_; }
  [[nodiscard]] PoolRange tensors() const { return tensors_; }
  // Tensors that no batch has together. False: as for Count.
  bool Keep(const std::vector<format::Tensor>& tensors, PoolRange& range);

  // As long as the range; what cannot be read (any more) is zero.
  [[nodiscard]] std::vector<uint64_t> Words(PoolRange range) const;
  [[nodiscard]] std::vector<format::Tensor> Tensors(PoolRange range) const;

 private:
  static constexpr uint32_t kKept = 0x80000000;  // PoolRange.at: in kept_
  static constexpr size_t kPages = 4;

  // Where the words and tensors of a batch begin.
  struct Page {
    size_t batch = 0;
    uint32_t first_word = 0;
    uint32_t first_tensor = 0;
  };
  struct Loaded {
    std::vector<uint64_t> words;
    std::vector<format::Tensor> tensors;
  };
  struct Slot {
    size_t page = SIZE_MAX;
    uint64_t used = 0;  // when, in `uses_`
    std::shared_ptr<const Loaded> loaded;
  };

  [[nodiscard]] std::shared_ptr<const Loaded> Load(size_t page) const;
  [[nodiscard]] std::shared_ptr<const Loaded> Get(size_t page) const;
  template <typename T>
  std::vector<T> Gather(PoolRange range, uint32_t Page::*first,
                        std::vector<T> Loaded::*elements) const;

  const format::RankReader& reader_;
  std::vector<Page> pages_;
  std::vector<format::Tensor> kept_;
  PoolRange words_;
  PoolRange tensors_;

  mutable FutexMutex mutex_;  // guards what follows
  mutable std::array<Slot, kPages> slots_;
  mutable uint64_t uses_ = 0;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_PLAN_PAGES_H_
