// NcclChoices: what NCCL chooses for each collective (algorithm, protocol, channels), as it reports
// to its profiler plugin, which we are.
//
// NCCL reports while it launches a collective: within the program's call, or within the call that
// ends the group, on the program's thread. It reports on a thread of NCCL's or the driver's where
// communicators do not block, or a host function of CUDA's does the launch.
//
// From NCCL 2.28 on, it first reports the incoming call on the calling thread. With the choice it
// gives back our answer to that: the number of the operation. Older versions do not. There a choice
// belongs to the operation that this very thread is calling, or that is in the group it is ending.
// Function, buffers, count and root must be the same. A choice that fits operations of two
// communicators belongs to none.
//
// Reports on threads of the program are written at once; those on others wait for the next call on
// a communicator. Nothing is allocated, and no thread waits.
#ifndef DEJA_RECORDER_NCCL_NCCL_CHOICES_H_
#define DEJA_RECORDER_NCCL_NCCL_CHOICES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/runtime/spin_lock.h"
#include "recorder/nccl/pending_ops.h"

namespace deja::recorder {

class Recording;

class NcclChoices {
 public:
  explicit NcclChoices(Recording& recording);

  // The plugin under NCCL's name for it, "ncclProfiler_v4"; null: there is none of that version.
  static void* Plugin(std::string_view name);
  // Whether NCCL has taken one for a communicator.
  [[nodiscard]] bool told() const { return told_.load(std::memory_order_relaxed); }
  // NCCL has found a plugin of the program's own. Said in the trace with the next communicator.
  static void FoundOther();

  // While it lives, the thread is in the real function of a call. That is the call of `op`, or one
  // that may end the group with these operations.
  class Open {
   public:
    Open(Recording& recording, PendingOp* op, OpList* group);
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
  };

  // Writes the reports that came on threads that are not the program's.
  void WriteLate() {
    if (late_count_.load(std::memory_order_relaxed) != 0) WriteAllLate();
  }
  // A communicator has been made.
  void OnCommunicator();

  // A collective as NCCL describes it.
  struct Collective {
    void* parent = nullptr;
    int rank = 0;
    std::string_view func;  // "AllReduce"
    const void* send = nullptr;
    const void* recv = nullptr;
    uint64_t count = 0;
    int root = 0;
    const char* algorithm = nullptr;
    const char* protocol = nullptr;
    uint32_t channels = 0;
    uint32_t warps = 0;
  };
  // NCCL's reports: it works for a communicator; a call has come in (returns the value that NCCL
  // gives back with its later reports); what a collective is done by.
  static void OnInit();
  static void* OnCall();
  static void OnCollective(const Collective& collective);

 private:
  struct Operation {
    uint32_t comm = 0;  // number + 1
    uint64_t comm_seq = 0;
    uint32_t api = 0;
  };
  struct Choice {
    Operation operation;
    char algorithm[24] = {};
    char protocol[16] = {};
    uint32_t channels = 0;
    uint32_t warps = 0;
  };
  static void* Handle(const Operation& operation);
  static bool OfHandle(const void* handle, Operation& operation);
  static bool Match(const Collective& collective, Operation& operation);
  void Write(const Choice& choice);
  void Keep(const Choice& choice);
  void WriteAllLate();

  static constexpr size_t kLate = 512;
  static constexpr size_t kSeen = 1024;
  Recording& recording_;
  std::atomic<bool> told_{false};
  std::atomic<bool> said_other_{false};
  std::atomic<uint32_t> late_count_{0};
  SpinLock lock_;  // of what follows
  std::array<Choice, kLate> late_{};
  // Operations that were reported on other threads: one that was captured into a CUDA graph comes
  // again at each launch.
  std::array<uint64_t, kSeen> seen_{};
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_NCCL_NCCL_CHOICES_H_
