// Operations whose results are not there yet: calls inside a group, and calls on a communicator
// that does not block. A list of them belongs to a thread for its open group, to a communicator for
// what is in progress.
#ifndef DEJA_RECORDER_NCCL_PENDING_OPS_H_
#define DEJA_RECORDER_NCCL_PENDING_OPS_H_

#include <cstdint>

#include "preload/calls/buffers.h"
#include "recorder/events/node_list.h"

namespace deja::recorder {

// A collective of NCCL's as the program asked for it, by which NCCL's description of it is known
// again (nccl_choices.h).
struct IssuedCollective {
  const api::ApiInfo* info = nullptr;  // null: it is none, or has been described
  const void* send = nullptr;
  const void* recv = nullptr;
  uint64_t count = 0;
  uint32_t element_size = 0;
  int root = 0;
};

struct PendingOp {
  PendingOp* next = nullptr;
  uint32_t comm = 0;  // number + 1
  uint64_t comm_seq = 0;
  uint32_t series = 0;  // of the results
  uint64_t stream = 0;
  preload::BufferUse output;
  preload::BufferUse late_input;  // which the end of the group asks for; or empty
  bool tells_end = false;         // it has no output, and the trace says when it is done
  IssuedCollective issued;
};

using OpList = NodeList<PendingOp>;
using OpPool = NodePool<PendingOp>;

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_NCCL_PENDING_OPS_H_
