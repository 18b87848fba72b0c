// Calls that are matched in the order of their thread. For the servers; any thread.
#ifndef DEJA_REPLAYER_CORE_ORDERED_H_
#define DEJA_REPLAYER_CORE_ORDERED_H_

#include <string_view>

#include "replayer/core/session.h"

namespace deja::replayer {

// The recorded call that the program makes now; null if the replay goes on without one (a
// divergence has been reported). `comm`: its communicator's number + 1, or 0.
const RecordedCall* NextOrdered(Session& session, ThreadState& thread, const preload::Call& call,
                                uint32_t comm);

// The next ordered call of the recording on this thread; null at its end.
const RecordedCall* PeekOrdered(const Session& session, const ThreadState& thread);

// What is behind the operation on its stream waits for the communicator to be given up, as it did
// in the recorded run.
void HoldStreamAt(const LiveOperation& operation);

// Ends the replay: `message` says what cannot be served.
[[noreturn]] void FailReplay(Session& session, ThreadState& thread, std::string_view message,
                             uint32_t recorded_stack);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_ORDERED_H_
