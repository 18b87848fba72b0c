// NcclThread: what a replay knows of NCCL's calls on one thread: its open group, and the
// communicators that calls in it make. A part of ThreadState; belongs to the thread.
#ifndef DEJA_REPLAYER_NCCL_NCCL_THREAD_H_
#define DEJA_REPLAYER_NCCL_NCCL_THREAD_H_

#include <cstdint>
#include <vector>

#include "preload/calls/buffers.h"
#include "preload/calls/call.h"
#include "replayer/core/thread_state.h"
#include "replayer/nccl/served_comm.h"

namespace deja::replayer {

// An operation that the program has entered, and what was recorded of it.
struct LiveOperation {
  uint32_t index = kNone;  // in the plan's calls
  preload::Call call;
  ServedComm* comm = nullptr;
  preload::BufferUse input;
  preload::BufferUse output;
  uint64_t stream = 0;
  bool captured = false;   // into a CUDA graph
  bool tells_end = false;  // as RecordedCall has it
};

// A communicator that a call inside a group makes when the group ends.
struct PendingComm {
  uint64_t out = 0;     // address of the program's ncclComm_t
  uint32_t parent = 0;  // number + 1; 0: made from a unique id
  int64_t rank = -1;    // -1: not known from the call
};

struct NcclThread {
  static constexpr ThreadPart kPart = ThreadPart::kNccl;

  uint32_t depth = 0;                  // of groups
  std::vector<LiveOperation> pending;  // inside a group: their results are served when it ends
  std::vector<PendingComm> pending_comms;
  std::vector<ServedComm*> new_comms;  // whose ranks have to meet before anything is computed
};

inline NcclThread& NcclOf(ThreadState& thread) {
  return thread.Of<NcclThread>();
}

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_NCCL_THREAD_H_
