// ServedComm: what an ncclComm_t points to in a replay, or a curandGenerator_t, which counts as a
// communicator of one rank.
//
// Made when a recorded call that made a communicator is served. Never freed: programs use handles
// after their end, and the real library would say so. Any thread.
#ifndef DEJA_REPLAYER_NCCL_SERVED_COMM_H_
#define DEJA_REPLAYER_NCCL_SERVED_COMM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "preload/cuda/device.h"
#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

struct LiveGenerator;

class ServedComm {
 public:
  // `unfinished`: it was being made without blocking, and the recording never saw that end.
  ServedComm(const RecordedComm& recorded, bool unfinished)
      : recorded_(&recorded), unfinished_(unfinished) {}

  // The communicator behind a handle; null if it is none of ours.
  static ServedComm* From(uint64_t handle) {
    auto* comm = reinterpret_cast<ServedComm*>(handle);
    return comm != nullptr && comm->magic_.load(std::memory_order_relaxed) == kMagic ? comm
                                                                                     : nullptr;
  }
  [[nodiscard]] uint64_t handle() const { return reinterpret_cast<uint64_t>(this); }

  [[nodiscard]] uint32_t number() const { return recorded_->number; }  // number + 1
  [[nodiscard]] uint64_t hash() const { return recorded_->hash; }      // the same on all its ranks
  [[nodiscard]] uint32_t rank() const { return recorded_->rank; }
  [[nodiscard]] uint32_t nranks() const { return recorded_->nranks; }
  [[nodiscard]] int32_t device() const { return recorded_->device; }

  [[nodiscard]] bool unfinished() const { return unfinished_; }
  // It was destroyed or aborted: its handle means nothing any more.
  void End() { magic_.store(0, std::memory_order_relaxed); }

  // Position of the operation that is being entered, from 1.
  uint64_t NextOperation() { return operations_.fetch_add(1) + 1; }
  [[nodiscard]] uint64_t operations() const { return operations_.load(); }
  void SetOperations(uint64_t entered) { operations_.store(entered); }

  // The latest one writes nothing on this rank, so that no result says when it was done.
  [[nodiscard]] bool latest_has_output() const { return latest_has_output_.load(); }
  void SetLatestHasOutput(bool has) { latest_has_output_.store(has); }

  // Takes the place of an operation that the recorded run cut short, or whose end it never saw.
  // Later work on its stream waits until the program cuts it, as it did there. For device buffers.
  void HoldStream(uint64_t stream);
  // The same in a node of a graph, which waits.
  void AwaitLetGo();
  // The program cuts it.
  void LetGo();
  // Some communicator's streams are held: waiting for one could be for good.
  static bool AnyHeld() { return held_.load(std::memory_order_acquire) != 0; }

  // For a generator: what it works on, and the library's own one beside it (generators.h; null: the
  // recording has all that it produced).
  [[nodiscard]] uint64_t stream() const { return stream_.load(std::memory_order_relaxed); }
  void SetStream(uint64_t stream) { stream_.store(stream, std::memory_order_relaxed); }
  [[nodiscard]] LiveGenerator* generator() const { return generator_; }
  void SetGenerator(LiveGenerator* generator) { generator_ = generator; }
  // The loopback library's communicator (fold.h), on which the operations of this one are computed;
  // null: they are served.
  [[nodiscard]] void* computed() const { return computed_; }
  void SetComputed(void* comm) { computed_ = comm; }

 private:
  static constexpr uint64_t kMagic = 0x6d6d6f43616a6544;  // "DejaComm"
  std::atomic<uint64_t> magic_{kMagic};
  const RecordedComm* recorded_;
  const bool unfinished_;
  std::atomic<uint64_t> operations_{0};
  std::atomic<bool> latest_has_output_{true};
  std::atomic<uint64_t> stream_{0};
  LiveGenerator* generator_ = nullptr;  // before the program has the handle
  void* computed_ = nullptr;            // likewise
  std::mutex gate_mutex_;
  preload::Gate* gate_ = nullptr;  // made for the first such operation
  bool let_go_ = false;
  bool awaited_ = false;  // a thread waits, or has waited, for that
  std::condition_variable lets_go_;
  // Communicators with a closed gate, and those that are awaited.
  static std::atomic<uint32_t> held_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_SERVED_COMM_H_
