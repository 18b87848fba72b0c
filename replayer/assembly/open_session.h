// OpenSession: a session with the parts of all rooms. The one place that knows them all.
//
// Thread that begins the replay, within the guard.
#ifndef DEJA_REPLAYER_ASSEMBLY_OPEN_SESSION_H_
#define DEJA_REPLAYER_ASSEMBLY_OPEN_SESSION_H_

#include "replayer/core/session.h"

namespace deja::replayer {

// Null after an error has been reported.
Session* OpenSession(const SessionOptions& options);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_ASSEMBLY_OPEN_SESSION_H_
