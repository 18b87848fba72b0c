#include "recorder/sockets/recorded_connection.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "digest/digest.h"
#include "preload/hooks/input.h"
#include "preload/process/threads.h"
#include "preload/symbols/real_sockets.h"
#include "recorder/core/recording.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/sockets/connections.h"
#include "recorder/sockets/own_sockets.h"

namespace deja::recorder {

using format::ConnectionKind;
using preload::ConnectionName;
using preload::SocketAddress;
using preload::Transfer;

namespace {

// Bytes up to this many are in the event itself; what is longer is a payload.
constexpr size_t kMaxInlineBytes = 4 << 10;

// Nothing was transferred, and whether one tries again is a matter of time.
bool IsTiming(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// The bytes of a transfer in one piece: the program's own, or a copy.
class Gathered {
 public:
  Gathered(std::span<const iovec> pieces, size_t size) {
    if (pieces.empty() || size == 0) return;
    if (pieces[0].iov_len >= size) {
      bytes_ = {static_cast<const std::byte*>(pieces[0].iov_base), size};
      return;
    }
    std::byte* copy = Room(size);
    if (copy == nullptr) return;
    size_t at = 0;
    for (const iovec& piece : pieces) {
      const size_t n = std::min(piece.iov_len, size - at);
      std::memcpy(copy + at, piece.iov_base, n);
      at += n;
    }
    bytes_ = {copy, at};
  }
  ~Gathered() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_size_);
  }
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // The bytes, to be changed; empty if there is no memory.
  std::span<char> Copy() {
    std::byte* copy = mapped_ != nullptr || bytes_.data() == small_
                          ? const_cast<std::byte*>(bytes_.data())
                          : Room(bytes_.size());
    if (copy == nullptr) return {};
    if (copy != bytes_.data()) std::memcpy(copy, bytes_.data(), bytes_.size());
    return {reinterpret_cast<char*>(copy), bytes_.size()};
  }

 private:
  std::byte* Room(size_t size) {
    if (size <= sizeof small_) return small_;
    mapped_ = static_cast<std::byte*>(MapZeroed(size));
    mapped_size_ = size;
    return mapped_;
  }

  std::span<const std::byte> bytes_;
  std::byte* mapped_ = nullptr;
  size_t mapped_size_ = 0;
  std::byte small_[kMaxInlineBytes];
};

void AskName(int fd, bool of_peer, SocketAddress& address) {
  socklen_t size = sizeof address.bytes;
  address.size = 0;
  if (preload::real::GetName(fd, of_peer, reinterpret_cast<sockaddr*>(address.bytes), &size) == 0)
    address.size = std::min<socklen_t>(size, sizeof address.bytes);
}

std::string_view ThreadName() {
  return preload::Self().name;
}

constinit StableArray<RecordedConnection> g_pool;
constinit SpinLock g_free_lock;
constinit RecordedConnection* g_free = nullptr;

}  // namespace

class ConnectionPool {
 public:
  static RecordedConnection* Take() {
    {
      Hold hold(g_free_lock);
      if (g_free != nullptr) {
        RecordedConnection* object = g_free;
        g_free = object->next_free_;
        Clear(*object);
        return object;
      }
    }
    const uint32_t index = g_pool.Add();
    return index == StableArray<RecordedConnection>::kMissing ? nullptr : &g_pool[index];
  }
  static void GiveBack(RecordedConnection& object) {
    Hold hold(g_free_lock);
    object.next_free_ = g_free;
    g_free = &object;
  }

 private:
  static void Clear(RecordedConnection& object) {
    object.own_ = object.nowhere_ = object.pending_ = object.regular_ = false;
    object.local_.size = object.remote_.size = 0;
    object.peer_ = {};
    object.announced_in_.store(nullptr);
    object.transfers_.store(0);
    object.sent_.store(0);
    object.peeked_.store(0);
    object.heads_.reset();
    object.set_options_.Clear();
    object.file_size_ = 0;
  }
};

RecordedConnection* NewConnection() {
  return ConnectionPool::Take();
}

void RecordedConnection::OnUnused(int) {
  OwnSockets::Forget(*this, local_);
  ConnectionPool::GiveBack(*this);
}

void RecordedConnection::BeSocket(int domain, int type) {
  domain_ = domain;
  type_ = static_cast<uint32_t>(type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC));
  nowhere_ = true;
}

void RecordedConnection::BeDescriptor(ConnectionKind kind, uint32_t type,
                                      const ConnectionName& name, uint64_t file_size) {
  kind_ = kind;
  type_ = type;
  name_ = name;
  regular_ = type == S_IFREG;
  file_size_ = file_size;
}

void RecordedConnection::LearnSocket(int fd) {
  AskName(fd, false, local_);
  AskName(fd, true, remote_);
  if (!OwnSockets::IsListener(fd)) return;
  int type = 0;
  socklen_t size = sizeof type;
  if (preload::real::GetOption(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return;
  kind_ = ConnectionKind::kBound;
  domain_ = local_.family();
  type_ = static_cast<uint32_t>(type);
  OwnSockets::Listen(*this, local_);
}

void RecordedConnection::BeFifo(Recording& rec, std::string_view path, int flags, int error) {
  const uint32_t way = static_cast<uint32_t>(flags) & O_ACCMODE;
  const char* what = way == O_RDONLY ? "read" : way == O_WRONLY ? "write" : "both";
  name_ = ConnectionName::Open(path, flags, NextNumber(&rec, what, ThreadName(), path),
                               preload::Self().name);
  kind_ = ConnectionKind::kInherited;
  type_ = S_IFIFO;
  WriteOpened(rec, {.result = error == 0 ? 0 : -1, .error = static_cast<uint32_t>(error)});
  rec.RelieveStaging();
}

// The event that says that this connection exists, under a number of its own.
void RecordedConnection::WriteOpened(Recording& rec, const Opening& opening) {
  number_ = NextConnection(&rec);
  format::ConnectionOpened event;
  event.connection = number_;
  event.kind = static_cast<uint32_t>(kind_);
  event.name = name_.text;
  event.type = type_;
  event.local = local_.view();
  event.remote = remote_.view();
  event.result = opening.result;
  event.error = opening.error;
  event.listener = opening.listener;
  event.own = own_;
  event.file_size = file_size_;
  event.peer = peer_;
  rec.writer.Write(event);
  announced_in_.store(&rec, std::memory_order_release);
}

bool RecordedConnection::IsDatagrams() const {
  return domain_ != 0 && type_ == SOCK_DGRAM;
}

bool RecordedConnection::Announce(Recording& rec) {
  if (announced_in_.load(std::memory_order_acquire) == &rec) return !own_;
  if (nowhere_) {
    if (!IsDatagrams()) return false;
    nowhere_ = false;
    kind_ = ConnectionKind::kDatagrams;
    const char* thread = preload::Self().name;
    name_ = ConnectionName::Datagrams(NextNumber(&rec, "datagrams", ThreadName(), {}), thread);
  }
  Hold hold(announce_lock_);
  Recording* before = announced_in_.load(std::memory_order_relaxed);
  if (before == &rec) return !own_;
  if (before != nullptr) {  // a child speaks of what it has inherited
    name_ = ConnectionName::OfParent(name_);
    kind_ = ConnectionKind::kInherited;
    transfers_.store(0);
    sent_.store(0);
  }
  WriteOpened(rec, {});
  return !own_;
}

// A listener that the process was born with exists for a program that only looks at it, too. It may
// be that no process ever connects.
void RecordedConnection::AnnounceListener() {
  if (kind_ != ConnectionKind::kBound || announced_in_.load() != nullptr || nowhere_) return;
  const Within within;
  if (Recording* rec = within.recording()) Announce(*rec);
}

void RecordedConnection::Write(Recording& rec, format::Transfer& event) {
  event.connection = number_;
  event.number = transfers_.fetch_add(1, std::memory_order_relaxed);
  rec.writer.Write(event);
  rec.RelieveStaging();
}

// Values of secret headers are not stored. In place; true if there were any.
bool RecordedConnection::MaskHead(Recording& rec, std::span<char> bytes) {
  Hold hold(mask_lock_);
  if (!heads_) heads_.emplace(rec.secrets);
  return heads_->Mask(bytes, sent_.load(std::memory_order_relaxed));
}

bool RecordedConnection::MayBeHead(std::span<const std::byte> bytes) const {
  return (heads_ && heads_->in_head()) ||
         ReceivedHeads::MayBegin({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void RecordedConnection::WriteReceived(Recording& rec, const Transfer& transfer, int error) {
  format::Transfer event;
  event.direction = static_cast<uint32_t>(format::TransferKind::kReceived);
  event.result = transfer.result;
  event.error = static_cast<uint32_t>(error);
  event.sent_before = sent_.load(std::memory_order_relaxed);
  // MSG_TRUNC makes the result larger than what is there.
  const size_t size = transfer.result <= 0 ? 0
                                           : std::min(static_cast<size_t>(transfer.result),
                                                      preload::SizeOf(transfer.pieces));
  Gathered gathered(transfer.pieces, size);
  std::span<const std::byte> bytes = gathered.bytes();
  if (!bytes.empty() && MayBeHead(bytes)) {
    const std::span<char> copy = gathered.Copy();
    if (!copy.empty() && MaskHead(rec, copy)) bytes = std::as_bytes(copy);
  }
  if (size <= kMaxInlineBytes) {
    event.data = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } else {
    event.hash = digest::HashBytes(bytes);
    event.segment = rec.KeepPayload(event.hash, bytes, 1).segment;
  }
  if (const msghdr* message = transfer.message; message != nullptr && transfer.result >= 0) {
    if (message->msg_name != nullptr && message->msg_namelen <= sizeof(sockaddr_storage))
      event.address = {static_cast<const char*>(message->msg_name), message->msg_namelen};
    event.flags = static_cast<uint32_t>(message->msg_flags);
  }
  if (regular_ && transfer.result > 0) {
    const int64_t after =
        transfer.offset >= 0 ? transfer.offset + transfer.result : lseek(transfer.fd, 0, SEEK_CUR);
    event.position = static_cast<uint64_t>(std::max<int64_t>(0, after - transfer.result));
  }
  Write(rec, event);
}

void RecordedConnection::WritePeeked(Recording& rec, ssize_t result) {
  if (result <= peeked_.load(std::memory_order_relaxed)) return;
  peeked_.store(result, std::memory_order_relaxed);
  format::Transfer event;
  event.direction = static_cast<uint32_t>(format::TransferKind::kPeeked);
  event.result = result;
  event.sent_before = sent_.load(std::memory_order_relaxed);
  Write(rec, event);
}

void RecordedConnection::OnRead(Transfer& transfer) {
  transfer.Real();
  const int error = transfer.result < 0 ? errno : 0;
  // A replay makes connections to this process itself. It cannot see that another process was to
  // take one, and died before it did.
  const bool is_reset = error == ECONNRESET;
  if ((own_ && !is_reset) || IsTiming(error) || (transfer.flags & MSG_ERRQUEUE) != 0) return;
  if (nowhere_ && !IsDatagrams()) return;
  if (transfer.result == 0 && preload::SizeOf(transfer.pieces) == 0 && !IsDatagrams()) return;
  const Within within;
  Recording* rec = within.recording();
  if (rec == nullptr || (!Announce(*rec) && !is_reset)) return;
  if ((transfer.flags & MSG_PEEK) != 0) return WritePeeked(*rec, transfer.result);
  peeked_.store(0, std::memory_order_relaxed);
  WriteReceived(*rec, transfer, error);
}

void RecordedConnection::WriteSent(Recording& rec, const Transfer& transfer, int error) {
  format::Transfer event;
  event.direction = static_cast<uint32_t>(format::TransferKind::kSent);
  event.result = transfer.result;
  event.error = static_cast<uint32_t>(error);
  event.sent_before = sent_.load(std::memory_order_relaxed);
  if (transfer.result > 0) {
    const Gathered gathered(transfer.pieces, static_cast<size_t>(transfer.result));
    event.sent_hash = XXH3_64bits(gathered.bytes().data(), gathered.bytes().size());
    sent_.fetch_add(gathered.bytes().size(), std::memory_order_relaxed);
  }
  if (transfer.message != nullptr && transfer.message->msg_name != nullptr &&
      transfer.message->msg_namelen <= sizeof(sockaddr_storage))
    event.address = {static_cast<const char*>(transfer.message->msg_name),
                     transfer.message->msg_namelen};
  Write(rec, event);
}

void RecordedConnection::OnWrite(Transfer& transfer) {
  transfer.Real();
  const int error = transfer.result < 0 ? errno : 0;
  if (own_ || IsTiming(error) || transfer.result == 0) return;
  if (nowhere_ && !IsDatagrams()) return;
  const Within within;
  Recording* rec = within.recording();
  if (rec != nullptr && Announce(*rec)) WriteSent(*rec, transfer, error);
}

void RecordedConnection::AnnounceConnect(Recording& rec, int fd, int result, int error) {
  kind_ = ConnectionKind::kConnected;
  nowhere_ = false;
  pending_ = result < 0 && (error == EINPROGRESS || error == EINTR);
  transfers_.store(0);
  sent_.store(0);
  const char* thread = preload::Self().name;
  name_ = ConnectionName::Connect(
      remote_, NextNumber(&rec, "connect", ThreadName(), remote_.view()), thread);
  if (result == 0 || pending_) AskName(fd, false, local_);
  if (result == 0 && domain_ == AF_UNIX) peer_ = OwnSockets::PeerLineage(fd, peer_space_);
  WriteOpened(rec, {.result = result, .error = static_cast<uint32_t>(error)});
  if (result < 0 && !pending_) nowhere_ = true;
}

int RecordedConnection::OnConnect(int fd, const sockaddr* address, socklen_t size) {
  SocketAddress target;
  target.Set(address, size);
  const bool again = pending_ || (!nowhere_ && kind_ == ConnectionKind::kConnected &&
                                  announced_in_.load() != nullptr && type_ == SOCK_STREAM);
  OwnSockets::Connecting connecting(target);
  const int result = preload::real::Connect(fd, address, size);
  const int error = result < 0 ? errno : 0;
  const Within within;
  Recording* rec = within.recording();
  if (rec == nullptr || target.family() == AF_UNSPEC) return result;
  if (again) {
    // What came of the attempt that goes on; EALREADY says nothing, EISCONN that it succeeded.
    if (error == EALREADY) return result;
    if (error != 0 && error != EISCONN && Announce(*rec)) {
      format::Transfer event;
      event.direction = static_cast<uint32_t>(format::TransferKind::kState);
      event.error = static_cast<uint32_t>(error);
      Write(*rec, event);
    }
    pending_ = false;
    return result;
  }
  remote_ = target;
  own_ = connecting.Done(fd, result == 0 || error == EINPROGRESS, domain_, type_);
  AnnounceConnect(*rec, fd, result, error);
  rec->RelieveStaging();
  return result;
}

// `requested`: what bind was asked for; empty when listen has found an address by itself.
void RecordedConnection::AnnounceBind(Recording& rec, int fd, const SocketAddress& requested,
                                      int result, int error) {
  kind_ = ConnectionKind::kBound;
  remote_ = requested;
  if (result == 0) AskName(fd, false, local_);
  name_ = ConnectionName::Bind(NextNumber(&rec, "bind", ThreadName(), {}), preload::Self().name);
  WriteOpened(rec, {.result = result, .error = static_cast<uint32_t>(error)});
  if (result == 0) nowhere_ = false;
}

int RecordedConnection::OnBind(int fd, const sockaddr* address, socklen_t size) {
  const int result = preload::real::Bind(fd, address, size);
  const int error = result < 0 ? errno : 0;
  const Within within;
  if (within.recording() == nullptr) return result;
  SocketAddress requested;
  requested.Set(address, size);
  AnnounceBind(*within.recording(), fd, requested, result, error);
  return result;
}

int RecordedConnection::OnListen(int fd, int backlog) {
  const int result = preload::real::Listen(fd, backlog);
  if (result != 0) return result;
  const Within within;
  if (within.recording() == nullptr) return result;
  if (nowhere_)
    AnnounceBind(*within.recording(), fd, {}, 0, 0);
  else
    Announce(*within.recording());
  OwnSockets::Listen(*this, local_);
  return result;
}

int RecordedConnection::OnAccept(int fd, sockaddr* address, socklen_t* size, int flags) {
  SocketAddress peer;
  peer.size = sizeof peer.bytes;
  const int accepted =
      preload::real::Accept(fd, reinterpret_cast<sockaddr*>(peer.bytes), &peer.size, flags);
  if (accepted < 0) return accepted;
  peer.size = std::min<socklen_t>(peer.size, sizeof peer.bytes);
  if (address != nullptr) peer.CopyTo(address, size);
  const Within within;
  Recording* rec = within.recording();
  RecordedConnection* made = rec != nullptr ? NewConnection() : nullptr;
  if (made == nullptr) return accepted;
  Announce(*rec);  // of a listener that this process has inherited
  made->BeSocket(domain_, static_cast<int>(type_));
  made->kind_ = ConnectionKind::kAccepted;
  made->nowhere_ = false;
  made->remote_ = peer;
  AskName(accepted, false, made->local_);
  made->own_ = OwnSockets::IsOwnPeer(accepted, peer, made->local_);
  if (domain_ == AF_UNIX) made->peer_ = OwnSockets::PeerLineage(accepted, made->peer_space_);
  // By the listener's address: that of the connection may be another of the machine's.
  made->name_ = ConnectionName::Accept(local_, NextNumber(rec, "accept", {}, local_.view()));
  made->WriteOpened(*rec, {.listener = announced_in_.load() == rec ? number_ : 0});
  preload::FdTable::Set(accepted, made);
  rec->RelieveStaging();
  return accepted;
}

int RecordedConnection::OnShutdown(int fd, int how) {
  return preload::real::Shutdown(fd, how);
}

int RecordedConnection::OnGetName(int fd, bool of_peer, sockaddr* address, socklen_t* size) {
  AnnounceListener();
  return preload::real::GetName(fd, of_peer, address, size);
}

int RecordedConnection::OnGetOption(int fd, int level, int name, void* value, socklen_t* size) {
  AnnounceListener();
  if (value == nullptr || size == nullptr)
    return preload::real::GetOption(fd, level, name, value, size);
  if (level == SOL_SOCKET && name == SO_ERROR) {
    const int result = preload::real::GetOption(fd, level, name, value, size);
    int pending_error = 0;
    if (result == 0 && *size == sizeof pending_error)
      std::memcpy(&pending_error, value, sizeof pending_error);
    if (result != 0 || own_ || (!pending_ && pending_error == 0)) return result;
    const Within within;
    Recording* rec = within.recording();
    if (rec == nullptr || !Announce(*rec)) return result;
    pending_ = false;
    format::Transfer event;
    event.direction = static_cast<uint32_t>(format::TransferKind::kState);
    event.error = static_cast<uint32_t>(pending_error);
    event.sent_before = sent_.load(std::memory_order_relaxed);
    Write(*rec, event);
    return result;
  }
  // Sizes of buffers and the like, which are the system's. What is longer is statistics.
  constexpr socklen_t kMaxValue = 16;
  preload::Engine* engine = *size <= kMaxValue ? preload::EngineForHook() : nullptr;
  if (engine == nullptr) return preload::real::GetOption(fd, level, name, value, size);
  const uint64_t key = set_options_.KeyOf(level, name);
  return static_cast<int>(
      preload::TakeInput(*engine, api::LibcApi::kgetsockopt, key, preload::BytesOf(value, *size),
                         [&](preload::InputCall& call) {
                           call.result = preload::real::GetOption(fd, level, name, value, size);
                           call.produced = call.result == 0 ? *size : 0;
                         }));
}

int RecordedConnection::OnSetOption(int fd, int level, int name, const void* value,
                                    socklen_t size) {
  const int result = preload::real::SetOption(fd, level, name, value, size);
  if (result == 0 || errno != EFAULT) set_options_.Set(level, name, value, size);
  return result;
}

int RecordedConnection::OnBytesWaiting(int fd, int* bytes) {
  return preload::real::BytesWaiting(fd, bytes);
}

}  // namespace deja::recorder
