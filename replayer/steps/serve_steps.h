// How deja_tensor and deja_state are served: compared, in their order on the thread. Any thread,
// within the guard.
#ifndef DEJA_REPLAYER_STEPS_SERVE_STEPS_H_
#define DEJA_REPLAYER_STEPS_SERVE_STEPS_H_

#include "preload/calls/step_calls.h"
#include "replayer/core/session.h"

namespace deja::replayer {

void ServeSnapshot(Session& session, ThreadState& thread, const preload::SnapshotCall& call);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_STEPS_SERVE_STEPS_H_
