#include "format/window/shared_pieces.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "common/process/process_identity.h"
#include "common/runtime/errno_keeper.h"
#include "format/tail/job_memory.h"
#include "format/tail/tail.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format {
namespace {

constexpr uint64_t kPiecesMagic = 0x33736563656970;  // "pieces3"
constexpr size_t kHeaderBytes = 8192;
constexpr size_t kSets = 1 << 14;
constexpr int kWays = 7;

// A claim is copied at memory speed, but its thread may have to wait for a processor, or for its
// own buffer to be drained. What all ranks wait for anyway is no loss.
constexpr int kYields = 100;
constexpr int kNaps = 200;
constexpr long kNapNs = 100000;

enum State : uint64_t { kFree = 0, kClaimed = 1, kIsKept = 2 };
constexpr uint64_t kStateMask = 3;

}  // namespace

struct SharedPieces::Header {
  std::atomic<uint64_t> magic;
  std::atomic<uint64_t> nonce;
  std::atomic<uint64_t> members;
  std::atomic<uint64_t> closed;
};

// A cache line. A word holds 62 bits of what it stands for, and a State; the set is chosen by other
// bits.
struct alignas(64) SharedPieces::Set {
  std::atomic<uint64_t> next;  // the word to reuse
  std::atomic<uint64_t> words[kWays];
};

std::string SharedPiecesName(const std::string& job_id) {
  return TailNamePrefix(job_id) + "shared" + kTailNameSuffix;
}

std::unique_ptr<SharedPieces> SharedPieces::Open(const std::string& directory,
                                                 const std::string& job_id, uint32_t copies) {
  static_assert(sizeof(Set) == 64 && std::atomic<uint64_t>::is_always_lock_free);
  constexpr size_t kBytes = kHeaderBytes + kSets * sizeof(Set);
  if (directory.empty() || job_id.empty() || copies == 0) return nullptr;
  void* base = MapJobMemory(directory + "/" + SharedPiecesName(job_id), kBytes, kPiecesMagic);
  if (base == nullptr) return nullptr;
  std::unique_ptr<SharedPieces> shared(new SharedPieces);
  shared->header_ = static_cast<Header*>(base);
  shared->sets_ = reinterpret_cast<Set*>(static_cast<std::byte*>(base) + kHeaderBytes);
  Header& header = *shared->header_;
  uint64_t nonce = 0;
  uint64_t mine = 0;
  RandomBytes(reinterpret_cast<uint8_t*>(&mine), sizeof mine);
  mine |= 1;
  if (header.nonce.compare_exchange_strong(nonce, mine)) nonce = mine;
  shared->member_ = header.members.fetch_add(1);
  shared->group_ = shared->member_ % copies;
  const XXH128_hash_t id = XXH3_128bits_withSeed(job_id.data(), job_id.size(), nonce);
  shared->id_.assign(reinterpret_cast<const char*>(&id), sizeof id);
  return shared;
}

uint64_t SharedPieces::TagOf(const Hash128& hash, uint64_t piece, uint64_t key, Set*& set) const {
  struct {
    std::array<uint8_t, 16> hash;
    uint64_t piece;
    uint64_t group;
    uint64_t key;
  } name{hash.bytes, piece, group_, key};
  const XXH128_hash_t mixed = XXH3_128bits(&name, sizeof name);
  set = &sets_[mixed.high64 % kSets];
  return mixed.low64 & ~kStateMask;
}

std::atomic<uint64_t>* SharedPieces::Find(Set& set, uint64_t tag) {
  for (std::atomic<uint64_t>& word : set.words) {
    if ((word.load(std::memory_order_acquire) & ~kStateMask) == tag) return &word;
  }
  return nullptr;
}

SharedPieces::Claimed SharedPieces::Claim(const Hash128& hash, uint64_t piece, uint64_t key) {
  if (header_->closed.load(std::memory_order_acquire) != 0) return Claimed::kOurs;
  Set* set = nullptr;
  const uint64_t tag = TagOf(hash, piece, key, set);
  for (int attempt = 0; attempt < kWays; ++attempt) {
    std::atomic<uint64_t>* word = Find(*set, tag);
    const uint64_t next = set->next.load(std::memory_order_relaxed);
    if (word == nullptr) word = &set->words[next % kWays];
    uint64_t value = word->load(std::memory_order_acquire);
    if ((value & ~kStateMask) == tag) {
      if ((value & kStateMask) == kIsKept) return Claimed::kKept;
      if ((value & kStateMask) == kClaimed) return Claimed::kElsewhere;
    }
    if (!word->compare_exchange_strong(value, tag | kClaimed, std::memory_order_acq_rel)) continue;
    set->next.store(next + 1, std::memory_order_relaxed);
    return Claimed::kOurs;
  }
  return Claimed::kOurs;
}

void SharedPieces::Keep(const Hash128& hash, uint64_t piece, uint64_t key) {
  Set* set = nullptr;
  const uint64_t tag = TagOf(hash, piece, key, set);
  std::atomic<uint64_t>* word = Find(*set, tag);
  uint64_t value = tag | kClaimed;
  if (word != nullptr) word->compare_exchange_strong(value, tag | kIsKept);
}

void SharedPieces::Release(const Hash128& hash, uint64_t piece, uint64_t key) {
  Set* set = nullptr;
  const uint64_t tag = TagOf(hash, piece, key, set);
  std::atomic<uint64_t>* word = Find(*set, tag);
  uint64_t value = tag | kClaimed;
  if (word != nullptr) word->compare_exchange_strong(value, tag | kFree);
}

SharedPieces::Claimed SharedPieces::Await(const Hash128& hash, uint64_t piece, uint64_t key) {
  const ErrnoKeeper keep;
  Claimed claimed = Claim(hash, piece, key);
  for (int i = 0; claimed == Claimed::kElsewhere && i < kYields; ++i) {
    sched_yield();
    claimed = Claim(hash, piece, key);
  }
  for (int i = 0; claimed == Claimed::kElsewhere && i < kNaps; ++i) {
    const timespec nap{0, kNapNs};
    syscall(SYS_nanosleep, &nap, nullptr);
    claimed = Claim(hash, piece, key);
  }
  return claimed;
}

void SharedPieces::Close() {
  header_->closed.store(1, std::memory_order_release);
}

uint64_t SharedPieces::FirstPiece(uint64_t pieces) const {
  const uint64_t members = header_->members.load(std::memory_order_relaxed);
  return pieces == 0 || members == 0 ? 0 : member_ % members * pieces / members;
}

}  // namespace deja::format
