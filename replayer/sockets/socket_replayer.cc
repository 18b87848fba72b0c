#include "replayer/sockets/socket_replayer.h"

#include <sys/socket.h>

#include <cerrno>

#include "preload/meet/connection_names.h"

namespace deja::replayer {

void SocketReplayer::Begin(const Fifos& fifos, const std::string& rank, preload::PipeTable* pipes) {
  auto may_connect = [](void* self, const void* address, uint32_t size) {
    return static_cast<SocketReplayer*>(self)->MayConnect(-1, address, size);
  };
  connections_ = new ServedConnections(*replayer_.session, may_connect, this, fifos, rank,
                                       pipes);  // never destroyed
  connections_->InstallInherited();
  replayer_.session->AddLateStarter(connections_);
}

void SocketReplayer::Abandon() {
  if (connections_ != nullptr) connections_->Abandon();
  connections_ = nullptr;
}

bool SocketReplayer::MayConnect(int, const void* address, uint32_t length) {
  if (replayer_.allow_network) return true;
  if (address == nullptr || length < sizeof(sa_family_t)) return true;  // the call will fail
  preload::SocketAddress target;
  target.Set(address, length);
  const int family = target.family();
  // AF_UNSPEC dissolves an association; others are the kernel's own (netlink …).
  if (family != AF_INET && family != AF_INET6 && family != AF_UNIX) return true;
  replayer_.Refuse("connecting to", preload::AddressText(target).text, "--allow-network");
  errno = ECONNREFUSED;
  return false;
}

}  // namespace deja::replayer
