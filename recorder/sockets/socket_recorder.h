// SocketRecorder: gives the hooks the part that records connections (connections.h). It holds none
// back.
//
// One per process, never destroyed. Any thread.
#ifndef DEJA_RECORDER_SOCKETS_SOCKET_RECORDER_H_
#define DEJA_RECORDER_SOCKETS_SOCKET_RECORDER_H_

#include <cstdint>

#include "preload/calls/socket_calls.h"

namespace deja::recorder {

class SocketRecorder : public preload::SocketCalls {
 public:
  bool MayConnect(int, const void*, uint32_t) override { return true; }
  preload::ConnectionLayer* Connections() override { return connections_; }
  // Before the first call.
  void SetConnections(preload::ConnectionLayer* layer) { connections_ = layer; }

 private:
  preload::ConnectionLayer* connections_ = nullptr;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_SOCKETS_SOCKET_RECORDER_H_
