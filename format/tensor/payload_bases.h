// PayloadBases: the last tensor of each series that a rank wrote. The next one can be written as
// the difference to it (docs/FORMAT.md, "Differences").
//
// Tensors of a series are likely to differ little. A series is a named tensor at each of its
// snapshots, the same collective's result of each step, or a registered object at each checkpoint.
// Chunks of one series with the same place and size follow one another. Memory is bounded: what
// does not fit is not remembered. What was not seen for some steps (at the last one, for
// checkpoints) makes room. A series whose differences save nothing is tried ever more rarely.
//
// Owner: RankWriter. One thread at a time. Running out of memory means that less is remembered.
#ifndef DEJA_FORMAT_TENSOR_PAYLOAD_BASES_H_
#define DEJA_FORMAT_TENSOR_PAYLOAD_BASES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace deja::format {

// What a difference builds on may itself be a difference, up to this depth: a reader decodes them
// all.
inline constexpr uint32_t kMaxDifferences = 15;

class PayloadBases {
 public:
  // 0: nothing is remembered.
  explicit PayloadBases(uint64_t memory) : memory_(memory) {}

  struct Place {
    uint32_t series = 0;  // 0: none
    uint64_t offset = 0;  // in the payload
    uint64_t size = 0;
    uint64_t step = 0;  // of the rank
  };
  struct Base {
    std::span<const std::byte> bytes;
    uint64_t frame = 0;  // where its chunk is in the file
    uint32_t differences = 0;
    uint64_t stored_size = 0;  // as it was encoded without a difference, it or one before it
    uint32_t element_size = 0;
  };

  // What was remembered of the place, if a difference to it may be written. Good until the next
  // call of Remember or Clear.
  [[nodiscard]] const Base* Find(const Place& place);
  enum class Tried { kNo, kSaved, kSavedNothing };
  // What has been written, and what became of a difference. `base.bytes` are copied.
  void Remember(const Place& place, const Base& base, Tried tried);
  // Another file begins: nothing in it can build on what is in this one.
  void Clear();

  [[nodiscard]] uint64_t bytes() const { return used_; }

 private:
  struct Entry {
    Place place;
    Base base;  // its bytes are in `copy`
    std::unique_ptr<std::byte[]> copy;
    uint32_t misses = 0;
    uint32_t skip = 0;  // chunks that are not tried
  };

  static uint64_t KeyOf(const Place& place);
  Entry* EntryOf(const Place& place);
  [[nodiscard]] bool IsStale(const Place& place, uint64_t step) const;
  bool MakeRoom(uint64_t size, uint64_t step);
  void Forget(Entry& entry);

  const uint64_t memory_;
  uint64_t used_ = 0;
  uint64_t checkpoint_step_ = 0;  // of the newest one
  uint64_t checkpoint_before_ = 0;
  std::unordered_map<uint64_t, Entry> entries_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_TENSOR_PAYLOAD_BASES_H_
