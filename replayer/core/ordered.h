// Calls that are matched in the order of their thread. For the servers; any thread.
#ifndef DEJA_REPLAYER_CORE_ORDERED_H_
#define DEJA_REPLAYER_CORE_ORDERED_H_

#include <cstdint>

#include "preload/calls/call.h"
#include "replayer/core/session.h"

namespace deja::replayer {

// The recorded call that the program makes now; null if the replay goes on without one (a
// divergence has been reported). `comm`: its communicator's number + 1, or 0.
const RecordedCall* NextOrdered(Session& session, ThreadState& thread, const preload::Call& call,
                                uint32_t comm);

// The next ordered call of the recording on this thread; null at its end.
const RecordedCall* PeekOrdered(const Session& session, const ThreadState& thread);

// The recorded call of this kind that is this thread's next one; the last one again when they are
// used up; null if there is none. For calls that are matched by kind alone.
const RecordedCall* NextOfKind(Session& session, ThreadState& thread, uint32_t api);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_ORDERED_H_
