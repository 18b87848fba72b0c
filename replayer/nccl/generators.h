// Generators of cuRAND's host API in a replay.
//
// What a generator produced is served as the results of collectives are. The trace may not have all
// of these bytes (levels order and digest, a window that has moved on). Then the program's own
// cuRAND computes them. One of its generators is made beside the served one, and every recorded
// call that succeeded is made for it, too. Where bytes are missing, the digest of what it produces
// is compared. A replay from a checkpoint cannot do that for a generator that was made before: how
// far it was at the checkpoint is not known.
//
// Any thread, under the guard.
#ifndef DEJA_REPLAYER_NCCL_GENERATORS_H_
#define DEJA_REPLAYER_NCCL_GENERATORS_H_

#include <cstdint>
#include <string>

#include "replayer/core/session.h"
#include "replayer/nccl/nccl_thread.h"

namespace deja::replayer {

// A generator of the library's own. Made with the served one, never freed. As with the program's:
// one thread at a time uses it.
struct LiveGenerator {
  uint64_t handle = 0;
  bool made_late = false;  // after the checkpoint that the replay started from
  std::string failure;     // why it cannot compute anything; empty: it can
};

// A call of the host API. Sets call.result and the program's out-parameters.
void ServeCurand(Session& session, ThreadState& thread, preload::Call& call);

// Has the generator of the library's own, which the operation's must have, produce the operation's
// result. True if that is what the program gets; it has been compared. False: the recording has the
// bytes, which are still to be served. Ends the replay if neither can be.
bool Generate(Session& session, ThreadState& thread, const LiveOperation& operation);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_GENERATORS_H_
