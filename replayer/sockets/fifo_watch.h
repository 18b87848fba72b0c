// FIFOs that a replayed process opens although its recording does not say so. A message says which
// process waits for which, since an open of a FIFO waits for its other end without a word.
//
// Any thread, within the guard.
#ifndef DEJA_REPLAYER_SOCKETS_FIFO_WATCH_H_
#define DEJA_REPLAYER_SOCKETS_FIFO_WATCH_H_

#include <string>

#include "preload/calls/connections.h"

namespace deja::replayer {

// The calling thread is about to open the FIFO `name`, which is at `place`, with open's `flags`. If
// that takes long a line on stderr says so. `release`: it is then also given an end, with nothing
// to read and no reader.
void BeginFifoOpen(const std::string& name, const std::string& place, int flags, bool release);
// It has come back. Also where nothing was begun.
void EndFifoOpen();

// For processes that are not recorded. If the open of a FIFO had come back, it would have been
// recorded. So the recorded process never came out of it, or its recording is lost; in both cases
// no other end comes.
class UnrecordedConnections final : public preload::ConnectionLayer {
 public:
  int OnSocket(int domain, int type, int protocol) override;
  const char* BeforeOpen(int dirfd, const char* path, int flags) override;
  preload::FdObject* AfterOpen(int dirfd, const char* path, int fd, int flags) override;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SOCKETS_FIFO_WATCH_H_
