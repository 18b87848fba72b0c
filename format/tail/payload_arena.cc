#include "format/tail/payload_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "common/runtime/own_mapping.h"
#include "common/runtime/thread_mark.h"

namespace deja::format {
namespace {

constexpr uint64_t kGrowBytes = 4 << 20;
constexpr uint64_t kMaxHighWater = 8 << 20;
constexpr uint64_t kPieceAlign = 1 << 20;  // of large payloads: whole chunks

// What is kept in one segment is not kept in another.
Hash128 InSegment(const Hash128& hash, uint32_t segment) {
  Hash128 mixed = hash;
  uint32_t word = 0;
  std::memcpy(&word, mixed.bytes.data() + 8, sizeof word);
  word ^= segment;
  std::memcpy(mixed.bytes.data() + 8, &word, sizeof word);
  return mixed;
}

}  // namespace

RecentHashes::~RecentHashes() {
  for (Hash128* table : tables_) {
    if (table != nullptr) munmap(table, kSlots * sizeof(Hash128));
  }
}

// The slot that holds `hash`, or the empty one where it belongs.
Hash128* RecentHashes::Find(Hash128* table, const Hash128& hash) {
  size_t at = hash.Prefix() % kSlots;
  while (!table[at].IsZero() && table[at] != hash) at = (at + 1) % kSlots;
  return &table[at];
}

bool RecentHashes::Contains(const Hash128& hash) const {
  for (Hash128* table : tables_) {
    if (table != nullptr && !Find(table, hash)->IsZero()) return true;
  }
  return false;
}

void RecentHashes::Insert(const Hash128& hash) {
  if (hash.IsZero()) return;
  if (tables_[0] == nullptr || entries_ >= kSlots / 2) {
    // The older table's pages go back to the system and read as zeros from now on.
    if (tables_[1] != nullptr) madvise(tables_[1], kSlots * sizeof(Hash128), MADV_DONTNEED);
    std::swap(tables_[0], tables_[1]);
    entries_ = 0;
    if (tables_[0] == nullptr) {
      void* memory = MapOwn(kSlots * sizeof(Hash128), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
      if (memory == MAP_FAILED) return;  // payloads may then be kept more than once
      tables_[0] = static_cast<Hash128*>(memory);
    }
  }
  Hash128* slot = Find(tables_[0], hash);
  if (slot->IsZero()) ++entries_;
  *slot = hash;
}

PayloadArena::PayloadArena(Tail& tail)
    : tail_(tail),
      header_(tail.header()),
      arena_(tail.arena()),
      capacity_(tail.header().arena_bytes),
      high_water_(std::min(kMaxHighWater, capacity_ / 4)),
      ready_(tail.first_arena_bytes()) {}

bool PayloadArena::Lock() {
  const void* self = ThreadMark();
  if (owner_.load(std::memory_order_relaxed) == self) return false;
  mutex_.lock();
  owner_.store(self, std::memory_order_relaxed);
  return true;
}

void PayloadArena::Unlock() {
  owner_.store(nullptr, std::memory_order_relaxed);
  mutex_.unlock();
}

bool PayloadArena::Known(const Hash128& hash, uint32_t segment, bool& refused) {
  refused = !Lock();
  if (refused) return false;
  const bool known = hashes_.Contains(InSegment(hash, segment));
  Unlock();
  return known;
}

// Gets memory for the next part of the arena. `seen`: what the caller found ready.
bool PayloadArena::Grow(uint64_t seen) {
  grow_mutex_.lock();
  const uint64_t ready = ready_.load(std::memory_order_relaxed);
  bool grown = ready != seen;
  if (!grown && !grow_failed_.load(std::memory_order_relaxed)) {
    uint64_t step = std::min(kGrowBytes, capacity_ - ready);
    while (step >= kTailPage && !(grown = tail_.PrepareArena(ready, step))) {
      step = step / 2 / kTailPage * kTailPage;
    }
    if (grown) ready_.store(ready + step, std::memory_order_release);
    // The file system is full. From now on the arena is as large as it is.
    if (!grown) grow_failed_.store(true, std::memory_order_release);
  }
  grow_mutex_.unlock();
  return grown;
}

BlockHeader* PayloadArena::PutHeader(uint64_t position, BlockState state, uint64_t block_bytes) {
  auto* block = reinterpret_cast<BlockHeader*>(At(position));
  block->block_bytes = block_bytes;
  block->state.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  // Publishes the header; a reader that finds the head beyond it finds it whole.
  header_.arena_head.store(position + block_bytes, std::memory_order_release);
  return block;
}

PayloadArena::Room PayloadArena::Reserve(uint64_t wanted, BlockHeader*& block, uint64_t& size) {
  for (;;) {
    const uint64_t ready = ready_.load(std::memory_order_acquire);
    const bool grows = ready < capacity_ && !grow_failed_.load(std::memory_order_acquire);
    if (ready == 0) {
      if (grows && Grow(ready)) continue;
      return Room::kNever;
    }
    // A quarter at most, so that the drainer and the producers can work at the same time.
    uint64_t most = (grows ? capacity_ : ready) / 4 - sizeof(BlockHeader);
    most = most >= kPieceAlign ? most / kPieceAlign * kPieceAlign
                               : most / kTailBlockAlign * kTailBlockAlign;
    size = std::min(wanted, most);
    const uint64_t need = BlockBytes(size);

    if (!Lock()) return Room::kNever;
    const uint64_t head = header_.arena_head.load(std::memory_order_relaxed);
    const uint64_t tail = header_.arena_tail.load(std::memory_order_acquire);
    const uint64_t begin = head % capacity_;
    const uint64_t room = capacity_ - (head - tail);
    // A filler must fit after the block unless the block ends where the arena does.
    const uint64_t end = begin + need;
    const bool fits = end == capacity_ ? ready == capacity_ : end + sizeof(BlockHeader) <= ready;
    if (fits) {
      const bool enough = room >= need;
      if (enough) {
        block = PutHeader(head, BlockState::kReserved, need);
        const uint64_t in_use = outstanding_.fetch_add(need, std::memory_order_relaxed) + need;
        if (in_use > header_.peak_bytes.load(std::memory_order_relaxed))
          header_.peak_bytes.store(in_use, std::memory_order_relaxed);
      }
      Unlock();
      return enough ? Room::kYes : Room::kFull;
    }
    // Starts over at the beginning if there is room; more memory only if there is none.
    const uint64_t rest = capacity_ - begin;
    const bool can_grow = grows && end <= capacity_ && room < rest + need;
    const bool fill = !can_grow && room >= rest;
    if (fill) PutHeader(head, BlockState::kFiller, rest);
    Unlock();
    if (can_grow) {
      Grow(ready);
    } else if (!fill) {
      return Room::kFull;
    }
  }
}

void PayloadArena::Commit(BlockHeader* block) {
  block->state.store(static_cast<uint32_t>(BlockState::kComplete), std::memory_order_release);
}

bool PayloadArena::Remember(const Hash128& hash, uint32_t segment, BlockHeader* only_block) {
  const bool locked = Lock();
  const Hash128 key = InSegment(hash, segment);
  const bool known = locked && hashes_.Contains(key);
  if (only_block != nullptr) {
    const BlockState state = known ? BlockState::kDuplicate : BlockState::kComplete;
    only_block->state.store(static_cast<uint32_t>(state), std::memory_order_release);
  }
  // After the commit: who finds the hash may rely on the bytes.
  if (locked && !known) hashes_.Insert(key);
  if (locked) Unlock();
  return !known;
}

uint64_t PayloadArena::free_bytes() const {
  const bool whole = !grow_failed_.load(std::memory_order_relaxed);
  const uint64_t limit = whole ? capacity_ : ready_.load(std::memory_order_relaxed);
  return limit - std::min(limit, used());
}

// Null, and `broken`, if what is there cannot be a block.
BlockHeader* PayloadArena::BlockAt(uint64_t position, uint64_t head, bool& broken) {
  auto* block = reinterpret_cast<BlockHeader*>(At(position));
  const auto state = static_cast<BlockState>(block->state.load(std::memory_order_acquire));
  const uint64_t left = capacity_ - position % capacity_;
  const bool known = state == BlockState::kReserved || state == BlockState::kComplete ||
                     state == BlockState::kFiller || state == BlockState::kDuplicate;
  broken = !known || block->block_bytes < sizeof(BlockHeader) || block->block_bytes > left ||
           block->block_bytes % kTailBlockAlign != 0 || block->block_bytes > head - position;
  if (!broken && state == BlockState::kComplete) {
    broken = block->size > block->block_bytes - sizeof(BlockHeader);
  }
  return broken ? nullptr : block;
}

BlockHeader* PayloadArena::Front(bool& broken) {
  broken = false;
  const uint64_t tail = header_.arena_tail.load(std::memory_order_relaxed);
  const uint64_t head = header_.arena_head.load(std::memory_order_acquire);
  if (head == tail) return nullptr;
  BlockHeader* block = BlockAt(tail, head, broken);
  const bool reserved = block != nullptr && block->state.load(std::memory_order_acquire) ==
                                                static_cast<uint32_t>(BlockState::kReserved);
  return reserved ? nullptr : block;
}

void PayloadArena::CountPending(uint64_t& payloads, uint64_t& bytes) {
  payloads = bytes = 0;
  const uint64_t head = header_.arena_head.load(std::memory_order_acquire);
  uint64_t position = header_.arena_tail.load(std::memory_order_relaxed);
  bool broken = false;
  while (position != head) {
    const BlockHeader* block = BlockAt(position, head, broken);
    if (block == nullptr) return;
    if (block->state.load(std::memory_order_acquire) ==
            static_cast<uint32_t>(BlockState::kComplete) &&
        block->offset + block->size == block->total_size) {
      ++payloads;
      bytes += block->total_size;
    }
    position += block->block_bytes;
  }
}

void PayloadArena::Pop(BlockHeader* block) {
  const uint64_t bytes = block->block_bytes;
  const auto state = static_cast<BlockState>(block->state.load(std::memory_order_relaxed));
  if (state != BlockState::kFiller) outstanding_.fetch_sub(bytes, std::memory_order_relaxed);
  const uint64_t tail = header_.arena_tail.load(std::memory_order_relaxed);
  header_.arena_tail.store(tail + bytes, std::memory_order_release);
}

void PayloadArena::Rewind() {
  // Not worth a wait: a producer may hold the lock, or be the thread that a signal handler, in
  // which the process ends, has interrupted.
  if (!mutex_.try_lock()) return;
  owner_.store(ThreadMark(), std::memory_order_relaxed);
  const uint64_t head = header_.arena_head.load(std::memory_order_relaxed);
  const uint64_t begin = head % capacity_;
  if (head == header_.arena_tail.load(std::memory_order_relaxed) && begin != 0) {
    const uint64_t rest = capacity_ - begin;
    PutHeader(head, BlockState::kFiller, rest);
    header_.arena_tail.store(head + rest, std::memory_order_release);
  }
  Unlock();
}

}  // namespace deja::format
