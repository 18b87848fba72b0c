#include "loopback/algorithms/agreement.h"

#include "loopback/algorithms/collectives.h"
#include "loopback/ranks/parameters.h"

namespace deja::loopback {
namespace {

uint32_t Mixed(uint64_t hash, uint64_t value) {
  return static_cast<uint32_t>(((hash ^ value) * 0x9E3779B97F4A7C15u) >> 32);
}

}  // namespace

Agreement::Agreement(ncclComm* comm, const CollectiveCall& call)
    : comm_(*comm), is_strict_(kStrict.Integer() != 0) {
  call_ = Mixed(static_cast<uint64_t>(call.kind) + 1, call.count);
  call_ = Mixed(call_, static_cast<uint64_t>(call.reduction.dtype));
  call_ = Mixed(call_, static_cast<uint64_t>(call.root));
}

// The number and the hash in one word; ranks are at most one collective apart while they compare.
void Agreement::Announce(uint64_t number) {
  number_ = (number + 1) & UINT32_MAX;
  if (!is_strict_) return;
  RankCell& own = comm_.area.cell(comm_.rank);
  own.calls[number_ % kCalls].store(number_ << 32 | call_, std::memory_order_seq_cst);
  for (int rank = 0; rank < comm_.nranks; ++rank)
    if (rank != comm_.rank) comm_.area.Ring(rank);
}

uint64_t Agreement::AnnouncedBy(int peer) const {
  return comm_.area.cell(peer).calls[number_ % kCalls].load(std::memory_order_acquire);
}

bool Agreement::HasOtherProtocol(int peer) const {
  return comm_.area.cell(peer).protocol.load(std::memory_order_acquire) !=
         comm_.area.cell(comm_.rank).protocol.load(std::memory_order_acquire);
}

bool Agreement::Awaits(int peer) const {
  if (is_reached_ || peer == comm_.rank) return false;
  return HasOtherProtocol(peer) || (is_strict_ && AnnouncedBy(peer) >> 32 != number_);
}

Agreement::State Agreement::Look() {
  if (is_reached_) return State::kReached;
  bool is_open = false;
  for (int rank = 0; rank < comm_.nranks; ++rank) {
    if (HasOtherProtocol(rank)) return State::kNever;
    if (!is_strict_) continue;
    const uint64_t announced = AnnouncedBy(rank);
    if (announced >> 32 != number_) {
      is_open = true;
    } else if (static_cast<uint32_t>(announced) != call_) {
      unlike_ = rank;
      return State::kBroken;
    }
  }
  if (is_open) return State::kOpen;
  is_reached_ = true;
  return State::kReached;
}

}  // namespace deja::loopback
