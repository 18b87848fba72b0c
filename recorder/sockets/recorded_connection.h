// RecordedConnection: what one descriptor of a connection leads to while its process is recorded.
//
// See connections.h. Made by NewConnection, given back by OnUnused.
#ifndef DEJA_RECORDER_SOCKETS_RECORDED_CONNECTION_H_
#define DEJA_RECORDER_SOCKETS_RECORDED_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "format/wire/messages.h"
#include "preload/calls/connections.h"
#include "preload/calls/set_options.h"
#include "preload/meet/connection_names.h"
#include "recorder/core/recording.h"
#include "recorder/sockets/received_heads.h"

namespace deja::recorder {

class RecordedConnection final : public preload::ConnectionObject {
 public:
  // A socket that leads nowhere yet.
  void BeSocket(int domain, int type);
  // A descriptor that was there from the beginning. Its name is the event's.
  void BeDescriptor(format::ConnectionKind kind, uint32_t type, const preload::ConnectionName& name,
                    uint64_t file_size);
  // For a socket that is such a descriptor: its addresses, and whether it is a listener.
  void LearnSocket(int fd);
  // A FIFO that was opened by name; `error`: or failed to be. Its event is written.
  void BeFifo(Recording& rec, std::string_view path, int flags, int error);

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
  friend class ConnectionPool;

  // What the call that makes a connection has led to.
  struct Opening {
    int64_t result = 0;
    uint32_t error = 0;
    uint32_t listener = 0;  // the number of the one that accepted it; 0: none that is in the trace
  };

  // Says to the trace that this connection exists, unless that has been done in this process. False
  // if nothing that it transfers belongs into the trace.
  bool Announce(Recording& rec);
  void AnnounceListener();
  void WriteOpened(Recording& rec, const Opening& opening);
  void Write(Recording& rec, format::Transfer& event);
  void WriteReceived(Recording& rec, const preload::Transfer& transfer, int error);
  [[nodiscard]] bool MayBeHead(std::span<const std::byte> bytes) const;
  bool MaskHead(Recording& rec, std::span<char> bytes);
  void WritePeeked(Recording& rec, ssize_t result);
  void WriteSent(Recording& rec, const preload::Transfer& transfer, int error);
  void AnnounceBind(Recording& rec, int fd, const preload::SocketAddress& requested, int result,
                    int error);
  void AnnounceConnect(Recording& rec, int fd, int result, int error);
  [[nodiscard]] bool IsDatagrams() const;

  RecordedConnection* next_free_ = nullptr;
  format::ConnectionKind kind_{};
  uint32_t type_ = 0;  // SOCK_…, or the file type
  int domain_ = 0;
  bool own_ = false;      // the other end is this process
  bool nowhere_ = false;  // a socket that is neither connected nor bound
  bool pending_ = false;  // connect() has begun and its result has not been asked for
  bool regular_ = false;
  uint64_t file_size_ = 0;
  preload::ConnectionName name_;
  preload::SocketAddress local_;
  preload::SocketAddress remote_;
  char peer_space_[128];
  std::string_view peer_;  // ConnectionOpened.peer
  // In whose recording it has which number; another one's after a fork.
  std::atomic<Recording*> announced_in_{nullptr};
  SpinLock announce_lock_;
  uint32_t number_ = 0;
  std::atomic<uint64_t> transfers_{0};
  std::atomic<uint64_t> sent_{0};
  std::atomic<int64_t> peeked_{0};  // how far, since the last receipt
  SpinLock mask_lock_;
  std::optional<ReceivedHeads> heads_;
  preload::SetOptions set_options_;
};

// From the pool; null when there is no memory. No other thread has it.
RecordedConnection* NewConnection();

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_SOCKETS_RECORDED_CONNECTION_H_
