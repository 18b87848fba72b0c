// ServedSocket: what a socket, or an inherited descriptor, of the replayed program leads to.
//
// See connections.h. State is guarded by the layer's lock. Never freed: another thread may be using
// a descriptor while it is closed.
#ifndef DEJA_REPLAYER_SOCKETS_SERVED_SOCKET_H_
#define DEJA_REPLAYER_SOCKETS_SERVED_SOCKET_H_

#include <cerrno>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "preload/calls/connections.h"
#include "preload/calls/set_options.h"
#include "preload/meet/connection_names.h"
#include "replayer/sockets/connections.h"

namespace deja::replayer {

class ServedSocket final : public preload::ConnectionObject {
 public:
  ServedSocket(ServedConnections& layer, int domain, int type, int protocol, int inner)
      : layer_(layer), domain_(domain), type_(type), protocol_(protocol), inner_(inner) {}

  void OnRead(preload::Transfer& transfer) override;
  void OnWrite(preload::Transfer& transfer) override;
  void OnUnused(int fd) override;
  int OnConnect(int fd, const sockaddr* address, socklen_t size) override;
  int OnBind(int fd, const sockaddr* address, socklen_t size) override;
  int OnListen(int fd, int backlog) override;
  int OnAccept(int fd, sockaddr* address, socklen_t* size, int flags) override;
  int OnShutdown(int fd, int how) override;
  int OnGetName(int fd, bool of_peer, sockaddr* address, socklen_t* size) override;
  int OnGetOption(int fd, int level, int name, void* value, socklen_t* size) override;
  int OnSetOption(int fd, int level, int name, const void* value, socklen_t size) override;
  int OnBytesWaiting(int fd, int* bytes) override;

 private:
  friend class ServedConnections;

  // A connection of the program to itself that has not been accepted.
  struct OwnConnection {
    int end = -1;  // what accept will return
    preload::SocketAddress from;
    preload::SocketAddress to;
    int pid = 0;  // recorded number of the process that connected; 0: this one, or not known
    uint64_t since_ns = 0;
  };

  // -1, and errno.
  static int Fail(int error) {
    errno = error;
    return -1;
  }
  void Lead(uint32_t connection);  // to the recorded one from now on
  bool IsReady();
  // Nothing but the end is there, now or for good.
  [[nodiscard]] bool AtEnd() const;
  // A byte in the program's end shows that something is there; taken away again.
  bool ShowByte();
  void TakeToken(int fd);
  void ShowEnd();
  [[nodiscard]] bool WaitForByte(int fd) const;
  // One attempt to hand something out; false: there is nothing yet.
  bool TryRead(preload::Transfer& transfer);
  // The same, not counted.
  bool TakeDue(preload::Transfer& transfer);
  size_t CopyChunk(const ConnectionScript::Chunk& chunk, size_t from, std::span<const iovec> pieces,
                   size_t skip, size_t& size);
  // Waits until something comes in. False: the call is over, errno says why; or the end.
  bool Wait(int fd, int flags, ssize_t& result);
  int ConnectOwn(ServedSocket& listener, const preload::SocketAddress& target, uint32_t planned);
  int ConnectLive(int fd, const preload::SocketAddress& target);
  // As recorded connection `planned`. `lock` may be let go.
  int ConnectPlanned(int fd, uint32_t planned, const preload::SocketAddress& target,
                     std::unique_lock<std::mutex>& lock);
  // To another process of the rank. `lock` is let go while it waits.
  int ConnectFamily(int fd, const preload::SocketAddress& target, int patience_ms,
                    std::unique_lock<std::mutex>& lock);
  // To a listener that was gone before an acceptance was recorded. The program finds when it first
  // reads that the connection was reset, or has ended.
  int ConnectUntaken(int fd, uint32_t planned, const preload::SocketAddress& target);
  void EndUntaken();
  // Connections of the rank's other processes come in, beside recorded ones.
  void ListenForFamily();
  // The recorded transfer of a connection to a process of the rank moved nothing: this one does
  // neither. With the lock.
  bool FailsLive(preload::Transfer& transfer, format::TransferKind kind);
  // What comes before the thread's answer is done first (family_order.h). Without the lock.
  void AfterLiveRead(const preload::Transfer& transfer);
  void AfterLiveWrite(const preload::Transfer& transfer);
  // This listener was accepted from by a process of the rank, which is not this one: it has
  // inherited it, and meets the clients.
  [[nodiscard]] bool IsForAnother() const { return for_another_; }
  // A socket of the kernel takes the place of the pair. False: errno says why.
  bool ReplacePair(int fd);
  bool TryAccept(int fd, sockaddr* address, socklen_t* size, int flags, int& accepted);
  int AcceptOwn(OwnConnection own, uint32_t planned, sockaddr* address, socklen_t* size, int flags);
  bool FindOwn(const PlannedConnection& planned, bool take, OwnConnection& found);
  bool BecomeDatagrams();
  int EmulateGetOption(int level, int name, void* value, socklen_t* size);
  [[nodiscard]] bool IsDatagrams() const { return domain_ != 0 && type_ == SOCK_DGRAM; }

  ServedConnections& layer_;
  int domain_;
  int type_;
  int protocol_;
  int inner_;                    // the library's end; -1: given away
  uint32_t connection_ = kNone;  // position in the plan
  uint32_t bound_ = kNone;       // as a listener
  preload::SocketAddress local_;
  preload::SocketAddress remote_;
  std::deque<OwnConnection> own_;  // that wait to be accepted
  std::map<std::pair<int, int>, std::vector<char>> options_;
  preload::SetOptions set_options_;
  uint32_t family_ = kNone;  // position in the plan of a connection to a process of the rank
  uint64_t family_received_ = 0;
  uint64_t family_sent_ = 0;
  uint32_t untaken_ = kNone;  // position in the plan of one that `inner_` listens for
  uint32_t waiting_ = 0;      // threads that wait to receive
  int family_listener_ = -1;
  bool for_another_ = false;
  bool live_ = false;  // leads to a process of the rank, or outside with leave
  bool listening_ = false;
  bool token_ = false;  // a byte shows that something is there
  bool ended_ = false;  // the end shows by itself
  bool is_pipe_ = false;
  bool read_shut_ = false;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SOCKETS_SERVED_SOCKET_H_
