// Operations whose results are not there yet: calls inside a group, and calls on a communicator
// that does not block.
//
// OpPool gives out PendingOp nodes and never gives memory back; OpList is a FIFO of them that
// belongs to whoever holds it (a thread for its open group, a communicator for what is in
// progress). OpPool: any thread. OpList: not synchronised.
#ifndef DEJA_RECORDER_PENDING_OPS_H_
#define DEJA_RECORDER_PENDING_OPS_H_

#include <cstddef>
#include <cstdint>

#include "preload/buffers.h"
#include "recorder/mapped_memory.h"
#include "recorder/spin_lock.h"

namespace deja::recorder {

struct PendingOp {
  PendingOp* next = nullptr;
  uint32_t comm = 0;  // number + 1
  uint64_t comm_seq = 0;
  uint64_t stream = 0;
  preload::BufferUse output;
};

class OpList {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  void Push(PendingOp* op) {
    op->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = op;
    last_ = op;
  }
  PendingOp* Pop() {
    PendingOp* op = first_;
    if (op != nullptr) first_ = op->next;
    return op;
  }
  // Takes everything out of the list.
  OpList Take() {
    OpList taken = *this;
    first_ = nullptr;
    return taken;
  }

 private:
  PendingOp* first_ = nullptr;
  PendingOp* last_ = nullptr;
};

class OpPool {
 public:
  // Null when there is no memory.
  PendingOp* Get() {
    Hold hold(lock_);
    if (free_.empty()) {
      constexpr size_t kCount = 256;
      auto* nodes = static_cast<PendingOp*>(MapZeroed(kCount * sizeof(PendingOp)));
      if (nodes == nullptr) return nullptr;
      for (size_t i = 0; i < kCount; ++i) free_.Push(new (&nodes[i]) PendingOp);
    }
    return free_.Pop();
  }
  void Put(PendingOp* op) {
    Hold hold(lock_);
    free_.Push(op);
  }

 private:
  SpinLock lock_;
  OpList free_;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_PENDING_OPS_H_
