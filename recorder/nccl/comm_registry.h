// CommRegistry: the program's communicators, by handle, and its generators of random numbers, which
// count as communicators of one rank.
//
// Numbers are given out in the order of creation and never again; a handle's address may be used
// again once its communicator is destroyed. Any thread; a Communicator is never freed.
#ifndef DEJA_RECORDER_NCCL_COMM_REGISTRY_H_
#define DEJA_RECORDER_NCCL_COMM_REGISTRY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/ids.h"
#include "common/runtime/spin_lock.h"
#include "format/tensor/payload_series.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/nccl/pending_ops.h"

namespace deja::recorder {

struct Communicator {
  CommId number = kNoComm;
  uint64_t hash = 0;  // the same on all its ranks
  int rank = 0;
  int nranks = 0;
  std::atomic<uint64_t> last_seq{0};  // of the collectives and point-to-point calls on it
  // The operations that were the last ones of the step before this one, and of the one before that.
  std::atomic<uint64_t> step{0};
  std::atomic<uint64_t> before_step{0};
  std::atomic<uint64_t> before_last_step{0};
  std::atomic<uint32_t> child_calls{0};  // split, shrink, grow
  std::atomic<uint64_t> grow_id{0};      // hash of the id that newcomers of the next grown one get
  std::atomic<int> async_error{0};       // the one that was recorded last
  std::atomic<uint64_t> stream{0};       // of a generator of cuRAND's: what it works on
  // Operations up to this one whose results have not come are given up: an abort has cut them.
  std::atomic<uint64_t> given_up_to{0};
  std::atomic<bool> has_windows{false};
  std::atomic<uint32_t> under_way{0};  // results that a device is to bring
  SpinLock pending_lock;
  OpList pending;  // operations that are in progress (non-blocking communicators)

  // The next operation's number; `steps` have begun.
  uint64_t Next(uint64_t steps) {
    const uint64_t last = last_seq.fetch_add(1, std::memory_order_relaxed);
    if (step.load(std::memory_order_relaxed) != steps) {
      step.store(steps, std::memory_order_relaxed);
      before_last_step.store(before_step.load(std::memory_order_relaxed),
                             std::memory_order_relaxed);
      before_step.store(last, std::memory_order_relaxed);
    }
    return last + 1;
  }
  // What the results of an operation have in common with those of the same one of each step
  // (format::PayloadBases); 0 before the first step.
  [[nodiscard]] uint32_t SeriesOf(uint64_t seq) const {
    if (step.load(std::memory_order_relaxed) == 0) return 0;
    uint64_t before = before_step.load(std::memory_order_relaxed);
    if (seq <= before) before = before_last_step.load(std::memory_order_relaxed);
    return format::SeriesNumber(uint64_t{number} << 32 ^ (seq - before));
  }

  [[nodiscard]] bool IsGivenUp(uint64_t seq) const { return seq <= given_up_to.load(); }
  // As it stands in events.
  [[nodiscard]] uint32_t wire() const { return number + 1; }
};

class CommRegistry {
 public:
  // Null for handles that are not known.
  Communicator* Find(uint64_t handle);
  Communicator* ByWire(uint32_t wire) { return wire == 0 ? nullptr : &comms_[wire - 1]; }
  // Null when there is no memory.
  Communicator* Add(uint64_t handle, uint64_t hash, int rank, int nranks);
  void Remove(uint64_t handle) { by_handle_.Erase(handle); }
  void Restore(uint64_t handle, const Communicator& comm) { by_handle_.Set(handle, comm.number); }

 private:
  KeyMap by_handle_;
  StableArray<Communicator> comms_;
};

// Hash of a communicator that is made from unique ids.
uint64_t HashOfIds(std::span<const std::byte> ids);
// Hash of a communicator that is made by the `call`-th such call on its parent.
uint64_t HashOfChild(uint64_t parent_hash, uint32_t api, uint32_t call, int64_t color);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_NCCL_COMM_REGISTRY_H_
