// PayloadArena: payloads on their way from the threads that made them to the background thread.
//
// A ring of blocks inside the tail (tail_format.h). Threads reserve a block under a short lock,
// copy without it, and commit; the drainer looks at the oldest block and gives it back. It also
// knows which payloads were kept lately, so that the same bytes are kept once.
//
// Owner: RankLog. Producer functions: any thread, except in a signal handler that interrupted one
// of them (they then refuse). Drainer functions: one thread at a time.
#ifndef DEJA_FORMAT_TAIL_PAYLOAD_ARENA_H_
#define DEJA_FORMAT_TAIL_PAYLOAD_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/ids.h"
#include "common/runtime/futex.h"
#include "format/tail/tail.h"
#include "format/tail/tail_format.h"

namespace deja::format {

// A set of hashes that forgets the oldest ones. Two tables of fixed size: when the newer is half
// full, the older is emptied and becomes the newer. Not thread-safe. Memory comes from the system
// as it is touched.
class RecentHashes {
 public:
  ~RecentHashes();
  // Contains: false may also mean "forgotten". Insert: `hash` is the newest now.
  [[nodiscard]] bool Contains(const Hash128& hash) const;
  void Insert(const Hash128& hash);

 private:
  static constexpr size_t kSlots = 1 << 19;
  static Hash128* Find(Hash128* table, const Hash128& hash);

  Hash128* tables_[2] = {nullptr, nullptr};  // newer, older
  size_t entries_ = 0;                       // in the newer
};

class PayloadArena {
 public:
  explicit PayloadArena(Tail& tail);

  // ---- Producers

  // True if the payload was kept lately, in `segment` or a later one. Also true if `refused` is
  // set: a signal handler has interrupted this thread inside the arena.
  bool Known(const Hash128& hash, uint32_t segment, bool& refused);

  enum class Room { kYes, kFull, kNever };
  // A block for at most `wanted` bytes of a payload; `size` says for how many. kFull: later;
  // kNever: there is no memory for an arena.
  Room Reserve(uint64_t wanted, BlockHeader*& block, uint64_t& size);
  // The bytes of a block have been copied.
  void Commit(BlockHeader* block);
  // All blocks of a payload have been committed, or there is only one and this commits it. False if
  // another thread was faster, so that these bytes are kept already.
  bool Remember(const Hash128& hash, uint32_t segment, BlockHeader* only_block);

  [[nodiscard]] uint64_t used() const { return outstanding_.load(std::memory_order_relaxed); }
  // Bytes that a payload may take without waiting, if no other thread takes them.
  [[nodiscard]] uint64_t free_bytes() const;
  // More than this outstanding: time to drain.
  [[nodiscard]] uint64_t high_water() const { return high_water_; }

  // ---- Drainer

  // The oldest block, if it is complete or a filler; null if there is none (or it is still being
  // copied). `broken` is set if the arena's memory has been overwritten by the program.
  BlockHeader* Front(bool& broken);
  void Pop(BlockHeader* block);
  // Payloads that have not been drained, by their last blocks.
  void CountPending(uint64_t& payloads, uint64_t& bytes);
  // If all is drained, goes on at the arena's beginning: that memory is there, and in the caches.
  void Rewind();

 private:
  bool Lock();
  void Unlock();
  bool Grow(uint64_t seen);
  std::byte* At(uint64_t position) { return arena_ + position % capacity_; }
  BlockHeader* BlockAt(uint64_t position, uint64_t head, bool& broken);
  BlockHeader* PutHeader(uint64_t position, BlockState state, uint64_t block_bytes);

  Tail& tail_;
  TailHeader& header_;
  std::byte* const arena_;
  const uint64_t capacity_;
  uint64_t high_water_;
  std::atomic<uint64_t> ready_;           // [0, ready_) has memory
  std::atomic<uint64_t> outstanding_{0};  // bytes in blocks that are not fillers
  std::atomic<bool> grow_failed_{false};
  FutexMutex grow_mutex_;
  FutexMutex mutex_;                         // of arena_head and the hashes
  std::atomic<const void*> owner_{nullptr};  // of mutex_: a thread, by an address of its own
  RecentHashes hashes_;                      // each with its segment mixed in
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_PAYLOAD_ARENA_H_
