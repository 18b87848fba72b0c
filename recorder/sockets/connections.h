// The recorder's connections: every call is made for real, and its result is written down.
//
// An object per socket or inherited descriptor, from a pool that reuses its memory but never gives
// it back (fd_table.h asks for that). Its events carry the number that it has in this process's
// recording; a forked child announces again what it has inherited. What is sent is recorded by
// length and hash only. Attempts that found nothing to do (EAGAIN, EINTR) are timing and are not
// recorded.
//
// Any thread. No lock is held across a real call; an event costs no system call and no allocation
// once its connection exists.
#ifndef DEJA_RECORDER_SOCKETS_CONNECTIONS_H_
#define DEJA_RECORDER_SOCKETS_CONNECTIONS_H_

#include "common/runtime/errno_keeper.h"
#include "preload/calls/connections.h"

namespace deja::preload {
class PipeTable;
}

namespace deja::recorder {

class Recording;

// Around what is done for a call of the program, after the real call: the guard is held and errno
// comes back.
class Within {
 public:
  Within();
  ~Within();
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  // Null when nothing is recorded.
  [[nodiscard]] Recording* recording() const { return recording_; }

 private:
  const ErrnoKeeper keep_;
  Recording* recording_;
};

// The layer of this process. `find_recording` is asked at each event: the first one may come before
// there is one. Null: nothing is recorded.
preload::ConnectionLayer& RecordConnections(Recording* (*find_recording)());

// Tracks stdin and what else the process was born with. Once, when the library is loaded.
void RecordInheritedConnections();
// Afterwards: whether ends of the rank's own pipes are among them; then follows them in `table`,
// which may be null.
bool HasInheritedPipes();
void RecordInheritedPipes(preload::PipeTable* table);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_SOCKETS_CONNECTIONS_H_
