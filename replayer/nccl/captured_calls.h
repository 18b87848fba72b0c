// Operations that the program captures into a CUDA graph. Nodes in the graph compare what each
// launch reads, and bring what it produced in the recording.
//
// Any thread, under the guard; the nodes run on threads of the driver.
#ifndef DEJA_REPLAYER_NCCL_CAPTURED_CALLS_H_
#define DEJA_REPLAYER_NCCL_CAPTURED_CALLS_H_

#include "replayer/nccl/operation_bytes.h"

namespace deja::replayer {

// Compares the operation's input before its place in the graph; its `result`, which is computed,
// after that.
void CompareAtLaunches(Session& session, ThreadState& thread, const LiveOperation& operation,
                       bool result);
// Serves its result after that place. Ends the replay if the graph cannot have the nodes.
void ServeAtLaunches(Session& session, ThreadState& thread, const LiveOperation& operation);

// The program launches a graph once more than the recording knows of. Returns if the replay goes on
// nevertheless. On a thread of the driver.
void ReportExtraLaunch(Session& session, ThreadState& thread, const LiveOperation& operation,
                       uint64_t launch);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_CAPTURED_CALLS_H_
