#include "format/window/disk_ledger.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "common/process/process_identity.h"
#include "common/runtime/futex.h"
#include "format/tail/job_memory.h"
#include "format/tail/tail.h"

namespace deja::format {
namespace {

constexpr uint64_t kLedgerMagic = 0x3272656764656c;  // "ledger2"
constexpr uint32_t kSlots = 4096;                    // ranks at a time
constexpr uint64_t kLookNs = 1000000000;
constexpr char kLedgerName[] = "ledger";

uint64_t Less(uint64_t value, uint64_t by) {
  return value - std::min(value, by);
}

// What was never published can be removed all the same.
void Add(std::atomic<uint64_t>& sum, int64_t bytes) {
  uint64_t seen = sum.load();
  while (!sum.compare_exchange_weak(seen, bytes >= 0 ? seen + static_cast<uint64_t>(bytes)
                                                     : Less(seen, static_cast<uint64_t>(-bytes)))) {
  }
}

}  // namespace

struct DiskLedger::Slot {
  std::atomic<uint64_t> pid;  // 0: free
  std::atomic<uint64_t> bytes;
};

struct DiskLedger::Layout {
  std::atomic<uint64_t> magic;
  std::atomic<uint64_t> budget;
  std::atomic<uint64_t> pool;
  std::atomic<uint64_t> children;  // bytes of all that there were
  std::atomic<uint64_t> left;      // bytes of ranks that are gone
  std::atomic<uint64_t> earlier;   // of these, of ranks that have come again
  std::atomic<uint64_t> used;      // slots after this one never were
  Slot slots[kSlots];
};

std::string DiskLedgerName(const std::string& job_id) {
  return TailNamePrefix(job_id) + kLedgerName + kTailNameSuffix;
}

std::unique_ptr<DiskLedger> DiskLedger::Map(const std::string& path, bool create) {
  void* base = MapJobMemory(path, sizeof(Layout), kLedgerMagic, create);
  if (base == nullptr) return nullptr;
  std::unique_ptr<DiskLedger> ledger(new DiskLedger);
  ledger->layout_ = static_cast<Layout*>(base);
  return ledger;
}

DiskLedger::~DiskLedger() {
  munmap(layout_, sizeof *layout_);
}

std::unique_ptr<DiskLedger> DiskLedger::Open(const std::string& directory,
                                             const std::string& job_id, const Budget& budget) {
  if (directory.empty() || job_id.empty()) return nullptr;
  auto ledger = Map(directory + "/" + DiskLedgerName(job_id), true);
  if (ledger == nullptr) return nullptr;
  ledger->layout_->budget.store(budget.all, std::memory_order_relaxed);
  ledger->layout_->pool.store(budget.children, std::memory_order_relaxed);
  return ledger;
}

std::unique_ptr<DiskLedger> DiskLedger::OfJob(const std::string& directory,
                                              const std::string& job_id) {
  return Map(directory + "/" + DiskLedgerName(job_id), false);
}

std::unique_ptr<DiskLedger> DiskLedger::OfTail(const std::string& tail_path) {
  // DIRECTORY/deja-JOB-PID-NONCE.tail
  std::string path = tail_path;
  for (int i = 0; i < 2; ++i) {
    const size_t dash = path.rfind('-');
    if (dash == std::string::npos) return nullptr;
    path.resize(dash);
  }
  return Map(path + "-" + kLedgerName + kTailNameSuffix, false);
}

void DiskLedger::BecomeRank(uint64_t earlier_bytes) {
  if (slot_ != nullptr) return;
  // Until a process counts them: CountEarlier.
  layout_->earlier.fetch_add(earlier_bytes);
  const auto pid = static_cast<uint64_t>(getpid());
  for (uint32_t i = 0; i < kSlots; ++i) {
    Slot& slot = layout_->slots[i];
    uint64_t nobody = 0;
    if (!slot.pid.compare_exchange_strong(nobody, pid)) continue;
    slot.bytes.store(bytes_);
    Add(layout_->children, -static_cast<int64_t>(bytes_));
    uint64_t used = layout_->used.load();
    while (used <= i && !layout_->used.compare_exchange_weak(used, i + 1)) {
    }
    slot_ = &slot;
    return;
  }
}

void DiskLedger::Publish(uint64_t bytes) {
  if (slot_ == nullptr) {
    Publish(layout_->children, bytes);
  } else if (slot_->pid.load(std::memory_order_relaxed) == static_cast<uint64_t>(getpid())) {
    slot_->bytes.store(bytes, std::memory_order_relaxed);
    bytes_ = bytes;
  } else {
    // It has left, or lives where others cannot see it.
    Publish(layout_->left, bytes);
  }
}

void DiskLedger::Publish(std::atomic<uint64_t>& sum, uint64_t bytes) {
  Add(sum, static_cast<int64_t>(bytes - bytes_));
  bytes_ = bytes;
}

void DiskLedger::Close(Layout& layout, Slot& slot, uint64_t pid) {
  const uint64_t bytes = slot.bytes.load();
  uint64_t owner = pid;
  if (slot.pid.compare_exchange_strong(owner, 0)) layout.left.fetch_add(bytes);
}

void DiskLedger::Leave() {
  if (slot_ != nullptr) Close(*layout_, *slot_, static_cast<uint64_t>(getpid()));
}

void DiskLedger::CountGone() {
  const uint64_t used = std::min<uint64_t>(layout_->used.load(), kSlots);
  for (uint64_t i = 0; i < used; ++i) {
    const uint64_t pid = layout_->slots[i].pid.load();
    if (pid != 0 && !Runs(static_cast<uint32_t>(pid))) Close(*layout_, layout_->slots[i], pid);
  }
}

uint64_t DiskLedger::RankShare() const {
  const uint64_t used = std::min<uint64_t>(layout_->used.load(), kSlots);
  uint64_t ranks = 0;
  for (uint64_t i = 0; i < used; ++i) ranks += layout_->slots[i].pid.load() != 0 ? 1 : 0;
  return Less(OfRanks(), OfGone()) / std::max<uint64_t>(ranks, 1);
}

uint64_t DiskLedger::OfGone() const {
  const uint64_t left = layout_->left.load();
  const uint64_t earlier = std::min(layout_->earlier.load(), left);
  return left - earlier + std::min(earlier, OfEarlier());
}

uint64_t DiskLedger::OfRanks() const {
  return Less(layout_->budget.load(), layout_->children.load());
}

DiskLedger::Gone DiskLedger::OfGoneRanks() {
  CountGone();
  return {layout_->left.load(), layout_->earlier.load()};
}

uint64_t DiskLedger::Correct(const Gone& known, const Gone& found) {
  // Whoever has come or gone meanwhile may not have been seen, and must not be left with nothing.
  uint64_t seen = known.all;
  layout_->left.compare_exchange_strong(seen, found.all);
  seen = known.earlier;
  layout_->earlier.compare_exchange_strong(seen, found.earlier);
  return Less(found.earlier, OfEarlier());
}

uint64_t DiskLedger::RoomForGone(bool is_child) const {
  const uint64_t children = layout_->children.load();
  uint64_t all = children + OfGone();
  const uint64_t used = std::min<uint64_t>(layout_->used.load(), kSlots);
  for (uint64_t i = 0; i < used; ++i)
    if (layout_->slots[i].pid.load() != 0) all += layout_->slots[i].bytes.load();
  const uint64_t room = Less(layout_->budget.load(), all);
  return is_child ? std::min(room, Less(layout_->pool.load(), children)) : room;
}

void DiskLedger::AddOfGone(bool is_child, int64_t bytes) {
  Add(is_child ? layout_->children : layout_->left, bytes);
}

uint64_t DiskLedger::ChildrenExcess() const {
  const uint64_t pool = layout_->pool.load();
  const uint64_t children = layout_->children.load();
  return children > pool / 4 * 3 ? children - pool / 2 : 0;
}

uint64_t DiskLedger::Share() {
  if (slot_ == nullptr) return (bytes_ + Less(layout_->pool.load(), layout_->children.load())) / 2;
  const uint64_t share = RankShare();
  // Only when it matters: each one is looked up in /proc. A process that is gone counts for what it
  // has left, and no more for a whole part.
  const uint64_t now = MonotonicNs();
  if (bytes_ < share / 2 || now - looked_ns_ < kLookNs) return share;
  looked_ns_ = now;
  CountGone();
  return RankShare();
}

}  // namespace deja::format
