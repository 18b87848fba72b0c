// SocketCalls: what an engine does with sockets and FIFOs.
//
// Any thread, with the guard held. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_SOCKET_CALLS_H_
#define DEJA_PRELOAD_CALLS_SOCKET_CALLS_H_

#include <cstdint>

namespace deja::preload {

class ConnectionLayer;

class SocketCalls {
 public:
  // False, with errno set, when a connection to `address` must not be made.
  virtual bool MayConnect(int fd, const void* address, uint32_t length) = 0;
  // The part that makes sockets (connections.h); null: they are the kernel's, as if we were not
  // there.
  virtual ConnectionLayer* Connections() { return nullptr; }

 protected:
  ~SocketCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_SOCKET_CALLS_H_
