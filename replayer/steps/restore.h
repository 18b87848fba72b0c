// Putting the state of a checkpoint into the program: what is registered in the replay must be what
// the checkpoint has.
//
// On the thread that called deja_step, before StartLate.
#ifndef DEJA_REPLAYER_STEPS_RESTORE_H_
#define DEJA_REPLAYER_STEPS_RESTORE_H_

#include <string>
#include <vector>

#include "format/reader/checkpoints.h"
#include "preload/engine/checkpoint_registry.h"
#include "replayer/core/session.h"

namespace deja::replayer {

struct RestoredObject {
  preload::RegisteredObject object;
  const format::CheckpointItem* item = nullptr;
};

// Pairs what is registered with what was recorded. Adds to `problems` what does not fit, each by
// its name.
std::vector<RestoredObject> MatchRegistered(const format::RecordedCheckpoint& checkpoint,
                                            std::vector<std::string>& problems);

// Adds threads and communicators that were made between the first step and the checkpoint, and are
// still used after it. This replay has not made them.
void FindMissing(Session& session, const ThreadState& thread, std::vector<std::string>& problems);

// Puts the recorded bytes in place. Without the guard: callbacks are code of the program. What went
// wrong; empty: nothing.
std::string RestoreObject(Session& session, const RestoredObject& restored);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_STEPS_RESTORE_H_
