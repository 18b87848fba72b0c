// SocketReplayer: connections come from the recording, and none is made that it does not have.
//
// One per process, made with the engine, never destroyed. Any thread, within the guard unless its
// interface says otherwise. errno afterwards is the recording's.
#ifndef DEJA_REPLAYER_SOCKETS_SOCKET_REPLAYER_H_
#define DEJA_REPLAYER_SOCKETS_SOCKET_REPLAYER_H_

#include <cstdint>
#include <string>

#include "preload/calls/socket_calls.h"
#include "replayer/core/replayer.h"
#include "replayer/sockets/connections.h"
#include "replayer/sockets/fifo_watch.h"
#include "replayer/sockets/fifos.h"

namespace deja::replayer {

class SocketReplayer : public preload::SocketCalls {
 public:
  explicit SocketReplayer(Replayer& replayer) : replayer_(replayer) {}

  // The process has a session; arguments as of ServedConnections.
  void Begin(const Fifos& fifos, const std::string& rank, preload::PipeTable* pipes);
  // In a forked child, which has none yet.
  void Abandon();

  // As ServedConnections; true where there is no session.
  [[nodiscard]] bool AreAnswersGiven(uint32_t thread) {
    return connections_ == nullptr || connections_->AreAnswersGiven(thread);
  }
  [[nodiscard]] bool IsFamilyServed() {
    return connections_ == nullptr || connections_->IsFamilyServed();
  }

  bool MayConnect(int fd, const void* address, uint32_t length) override;
  preload::ConnectionLayer* Connections() override {
    if (connections_ != nullptr) return connections_;
    return &unrecorded_connections_;
  }

 private:
  Replayer& replayer_;
  ServedConnections* connections_ = nullptr;  // null where there is no session
  UnrecordedConnections unrecorded_connections_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SOCKETS_SOCKET_REPLAYER_H_
