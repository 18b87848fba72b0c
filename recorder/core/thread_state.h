// What the recorder remembers of one thread, behind ThreadRecord::engine_state.
//
// Made on the thread's first event, in memory of its own; belongs to the thread.
#ifndef DEJA_RECORDER_CORE_THREAD_STATE_H_
#define DEJA_RECORDER_CORE_THREAD_STATE_H_

#include <cstdint>

#include "preload/process/threads.h"
#include "recorder/nccl/pending_ops.h"

namespace deja::recorder {

// A communicator that a call has begun to make: it is there when the group ends, or when a
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

struct ThreadState {
  static constexpr size_t kMaxPendingComms = 64;

  bool started = false;  // ThreadStart has been written
  bool ended = false;
  uint64_t last_ns = 0;    // time of its last event
  void* staged = nullptr;  // EventWriter's, until the process is live
  OpList group_ops;        // of the group that is open on this thread
  PendingComm pending_comms[kMaxPendingComms];
  uint32_t pending_comm_count = 0;
  uint64_t mpi_polls = 0;  // questions that MPI answered no, since the thread's last event of MPI
};

// Null when there is no memory.
ThreadState* StateOf(preload::ThreadRecord& self);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_CORE_THREAD_STATE_H_
