// NcclThread: what the recorder knows of NCCL's calls on one thread. It holds the operations of its
// open group and the communicators that calls have begun to make.
//
// A part of ThreadState; belongs to the thread.
#ifndef DEJA_RECORDER_NCCL_NCCL_THREAD_H_
#define DEJA_RECORDER_NCCL_NCCL_THREAD_H_

#include <cstddef>
#include <cstdint>

#include "recorder/events/thread_state.h"
#include "recorder/nccl/pending_ops.h"

namespace deja::recorder {

// A communicator that a call has begun to make. It is there when the group ends, or when a
// communicator that does not block says that it is done.
struct PendingComm {
  uint64_t out = 0;     // address of the program's ncclComm_t
  uint64_t handle = 0;  // what stood there after the call
  uint64_t hash = 0;
  uint64_t joined_as = 0;  // its hash on ranks that join it; 0: not known here
  int rank = -1;           // -1: to be asked of the new communicator
  int nranks = 0;
  uint32_t parent = 0;  // number + 1
  char name[64] = {};
};

struct NcclThread {
  static constexpr ThreadPart kPart = ThreadPart::kNccl;
  static constexpr size_t kMaxPendingComms = 64;

  OpList group_ops;  // of the group that is open on this thread
  PendingComm pending_comms[kMaxPendingComms];
  uint32_t pending_comm_count = 0;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_NCCL_NCCL_THREAD_H_
