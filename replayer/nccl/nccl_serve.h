// How calls of NCCL's API are served: each sets call.result and the program's out-parameters. Any
// thread, within the guard.
#ifndef DEJA_REPLAYER_NCCL_NCCL_SERVE_H_
#define DEJA_REPLAYER_NCCL_NCCL_SERVE_H_

#include <cstdint>
#include <string>

#include "preload/calls/call.h"
#include "replayer/core/session.h"
#include "replayer/nccl/nccl_thread.h"

namespace deja::replayer {

// Returns the recorded operation's position in the plan's calls, or kNone.
uint32_t ServeOperation(Session& session, ThreadState& thread, preload::Call& call);
void ServeGroup(Session& session, ThreadState& thread, preload::Call& call);
// Returns the recorded call; null if there is none.
const RecordedCall* ServeOrdered(Session& session, ThreadState& thread, preload::Call& call);
void ServeQuery(Session& session, ThreadState& thread, preload::Call& call);

// What differs between the recorded arguments and the live ones; empty: nothing.
std::string CompareArguments(const ReplayPlan& plan, const RecordedCall& recorded,
                             const preload::Call& live);
// Writes the recorded values of scalar out-parameters to where the live call wants them.
void WriteOuts(Session& session, const RecordedCall& recorded, preload::Call& call);
// Later work on the operation's stream waits for the communicator to be given up, as it did in the
// recorded run.
void HoldStreamAt(const LiveOperation& operation);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_NCCL_SERVE_H_
