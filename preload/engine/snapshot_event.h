// The event of what the program shows or registers, before anybody has looked into its memory.
//
// Any thread; nothing is dereferenced.
#ifndef DEJA_PRELOAD_ENGINE_SNAPSHOT_EVENT_H_
#define DEJA_PRELOAD_ENGINE_SNAPSHOT_EVENT_H_

#include "format/wire/messages.h"
#include "preload/calls/step_calls.h"

namespace deja::preload {

// Name, type, shape and place. `snapshot` refers to the call's name afterwards.
void DescribeSnapshot(const SnapshotCall& call, format::Snapshot& snapshot);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_SNAPSHOT_EVENT_H_
