#include "replayer/served_socket.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "preload/guard.h"
#include "preload/hooks/input.h"
#include "preload/real_sockets.h"
#include "preload/threads.h"
#include "replayer/ending.h"

namespace deja::replayer {

using preload::ConnectionName;
using preload::Guard;
using preload::SocketAddress;
using preload::Transfer;
namespace real = preload::real;

namespace {

size_t SizeOf(std::span<const iovec> pieces) {
  size_t size = 0;
  for (const iovec& piece : pieces) size += piece.iov_len;
  return size;
}

// Copies to the pieces, behind their first `skip` bytes.
void Scatter(std::string_view bytes, std::span<const iovec> pieces, size_t skip) {
  for (const iovec& piece : pieces) {
    if (skip >= piece.iov_len) {
      skip -= piece.iov_len;
      continue;
    }
    const size_t n = std::min(bytes.size(), piece.iov_len - skip);
    std::memcpy(static_cast<char*>(piece.iov_base) + skip, bytes.data(), n);
    bytes.remove_prefix(n);
    skip = 0;
    if (bytes.empty()) return;
  }
}

std::string Key(const char* what, const char* thread, const SocketAddress& address) {
  return std::string(what) + " " + thread + " " + std::string(address.view());
}

bool IsNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

int Fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

namespace {

// The file that a Unix socket's name is: programs look at it, change its mode and remove it.
void MakeName(const SocketAddress& address) {
  constexpr size_t kPath = offsetof(sockaddr_un, sun_path);
  if (address.family() != AF_UNIX || address.size <= kPath || address.bytes[kPath] == '\0') return;
  preload::Engine* engine = preload::EngineOfThisProcess();
  const std::string path(address.bytes + kPath,
                         strnlen(address.bytes + kPath, address.size - kPath));
  char buffer[PATH_MAX];
  const char* mapped = engine == nullptr ? nullptr
                                         : engine->MapPath(AT_FDCWD, path.c_str(),
                                                           preload::FileUse::kCreate, buffer);
  if (mapped != nullptr && mapped != path.c_str()) mknod(mapped, S_IFSOCK | 0777, 0);
}

}  // namespace

void ServedSocket::Lead(uint32_t connection) {
  connection_ = connection;
  layer_.by_connection_[connection] = this;
  const PlannedConnection& info = layer_.script_.Info(connection);
  if (!info.local.empty()) local_.Set(info.local);
  if (!info.remote.empty()) remote_.Set(info.remote);
  layer_.Refresh(*this);
}

bool ServedSocket::FindOwn(const PlannedConnection& planned, bool take, OwnConnection& found) {
  for (auto it = own_.begin(); it != own_.end(); ++it) {
    const bool named = planned.remote.size() > sizeof(sa_family_t);
    if (named && it->from.view() != planned.remote) continue;
    found = *it;
    if (take) own_.erase(it);
    return true;
  }
  return false;
}

// Something can be received (or accepted).
bool ServedSocket::IsReady() {
  ConnectionScript& script = layer_.script_;
  if (!listening_) return connection_ != kNone && script.IsDue(connection_);
  const ConnectionScript::Chunk* next = bound_ == kNone ? nullptr : script.Next(bound_);
  if (next == nullptr) return !own_.empty();
  if (!script.IsDue(bound_)) return false;
  const PlannedConnection& planned = script.Info(next->accepted);
  OwnConnection ignored;
  return !planned.own || FindOwn(planned, false, ignored);
}

bool ServedSocket::AtEnd() const {
  const ConnectionScript& script = layer_.script_;
  if (connection_ == kNone || !script.WasEnded(connection_) || !script.IsStream(connection_))
    return false;
  if (script.Next(connection_) == nullptr) return true;
  return script.IsDue(connection_) && script.OnlyEndsLeft(connection_);
}

void ServedSocket::TakeToken(int fd) {
  if (!token_) return;
  char byte;
  real::Recv(fd, &byte, 1, MSG_DONTWAIT);
  token_ = false;
}

size_t ServedSocket::CopyChunk(const ConnectionScript::Chunk& chunk, size_t from,
                               std::span<const iovec> pieces, size_t skip, size_t& size) {
  const PlannedTransfer& transfer = *chunk.transfer;
  std::string large;
  std::string_view bytes = layer_.session_.plan().Bytes(transfer.data);
  if (!transfer.hash.IsZero()) {
    const uint64_t total = layer_.session_.payloads().SizeOf(transfer.hash).value_or(0);
    const auto read = layer_.session_.payloads().Read(transfer.hash, total);
    if (!read) {
      layer_.Tell("connection '" + layer_.script_.Info(connection_).name +
                  "': " + std::to_string(transfer.result) +
                  " bytes that it received were not kept in the recording");
      large.assign(static_cast<size_t>(std::max<int64_t>(0, transfer.result)), '\0');
    } else {
      large.assign(reinterpret_cast<const char*>(read->data()), read->size());
    }
    bytes = large;
  }
  size = bytes.size();
  bytes.remove_prefix(std::min(from, bytes.size()));
  const size_t room = SizeOf(pieces) - skip;
  bytes = bytes.substr(0, room);
  Scatter(bytes, pieces, skip);
  return bytes.size();
}

bool ServedSocket::TryRead(Transfer& transfer) {
  ConnectionScript& script = layer_.script_;
  if (!script.IsDue(connection_)) {
    // The end stays, however often it was looked at.
    if (script.Next(connection_) != nullptr || !script.WasEnded(connection_)) return false;
    transfer.result = 0;
    return true;
  }
  const ConnectionScript::Chunk& chunk = *script.Next(connection_);
  const PlannedTransfer& planned = *chunk.transfer;
  const bool peek = (transfer.flags & MSG_PEEK) != 0;
  const bool stream = script.IsStream(connection_);
  layer_.Moved();
  if (msghdr* message = transfer.message; message != nullptr) {
    const std::string_view address = layer_.session_.plan().Bytes(planned.address);
    SocketAddress from;
    from.Set(address);
    socklen_t room = message->msg_namelen;
    if (message->msg_name != nullptr) from.CopyTo(static_cast<sockaddr*>(message->msg_name), &room);
    message->msg_namelen = message->msg_name != nullptr ? room : 0;
    message->msg_controllen = 0;
    message->msg_flags = static_cast<int>(planned.flags);
  }
  if (planned.error != 0 || planned.result <= 0) {
    transfer.result = planned.error != 0 ? -1 : 0;
    if (planned.error != 0) errno = planned.error;
    if (peek) return true;
    if (!ended_) TakeToken(transfer.fd);
    script.Take(connection_, 0, true);
    layer_.Refresh();
    return true;
  }
  const size_t room = SizeOf(transfer.pieces);
  const bool all = (transfer.flags & MSG_WAITALL) != 0 || peek;
  size_t done = 0;
  size_t ahead = 0;
  size_t taken = script.Taken(connection_);
  // What needs no more to be sent was there, too; and what the recorded run has looked at.
  const uint64_t sent_before = chunk.sent_before;
  const uint64_t seen = peek ? chunk.peeked : 0;
  for (const ConnectionScript::Chunk* next = &chunk; next != nullptr;) {
    size_t size = 0;
    const size_t n = CopyChunk(*next, taken, transfer.pieces, done, size);
    done += n;
    const bool whole = !stream || taken + n >= size;
    if (!peek) script.Take(connection_, n, whole);
    if (!stream || !all || !whole || done >= room) break;
    taken = 0;
    next = script.Ahead(connection_, peek ? ++ahead : 0);
    if (next == nullptr || next->transfer->result <= 0 || next->transfer->error != 0) break;
    if (done >= seen && next->sent_before > sent_before) break;
  }
  transfer.result = static_cast<ssize_t>(done);
  if ((transfer.flags & MSG_TRUNC) != 0 && !stream) transfer.result = planned.result;
  if (!peek) {
    if (!script.IsDue(connection_) || AtEnd()) TakeToken(transfer.fd);
    layer_.Refresh();
  }
  return true;
}

bool ServedSocket::Wait(int fd, int flags, ssize_t& result) {
  result = -1;
  if ((flags & MSG_DONTWAIT) != 0 || IsNonBlocking(fd)) {
    errno = EAGAIN;
    return false;
  }
  // The kernel's own waiting: time limits, signals and cancellation work as they do in a socket.
  char byte;
  const ssize_t n = real::Recv(fd, &byte, 1, MSG_PEEK);
  if (n < 0) return false;
  return true;
}

bool ServedSocket::BecomeDatagrams() {
  if (connection_ != kNone) return true;
  if (!IsDatagrams()) return false;
  if (bound_ != kNone) {
    Lead(bound_);
    return true;
  }
  const char* thread = preload::Self().name;
  const auto name = ConnectionName::Datagrams(layer_.Number(Key("datagrams", thread, {})), thread);
  const uint32_t found = layer_.script_.Find(name.text);
  if (found == kNone) return false;
  Lead(found);
  return true;
}

void ServedSocket::OnRead(Transfer& transfer) {
  bool waits = false;
  for (;;) {
    {
      Guard guard;
      if (layer_.abandoned() && !live_) {
        transfer.result = Fail(ECONNRESET);
        return;
      }
      std::unique_lock<std::mutex> lock(layer_.mutex_);
      if (waits) --waiting_;
      if (live_) {
        lock.unlock();
        --preload::t_guard_depth;
        transfer.Real();
        ++preload::t_guard_depth;
        return;
      }
      if (connection_ == kNone && !BecomeDatagrams()) {
        transfer.result = Fail(IsDatagrams() ? EAGAIN : ENOTCONN);
        return;
      }
      if ((transfer.flags & MSG_ERRQUEUE) != 0) {
        transfer.result = Fail(EAGAIN);
        return;
      }
      if (TryRead(transfer)) return;
      if (read_shut_) {
        transfer.result = 0;
        return;
      }
      waits = true;
      ++waiting_;
      layer_.StartPacer();
    }
    if (!Wait(transfer.fd, transfer.flags, transfer.result)) {
      Guard guard;
      const int saved_errno = errno;
      std::lock_guard<std::mutex> lock(layer_.mutex_);
      --waiting_;
      errno = saved_errno;
      return;
    }
  }
}

void ServedSocket::OnWrite(Transfer& transfer) {
  Guard guard;
  if (layer_.abandoned() && !live_) {
    transfer.result = Fail(ECONNRESET);
    return;
  }
  std::unique_lock<std::mutex> lock(layer_.mutex_);
  if (live_) {
    lock.unlock();
    --preload::t_guard_depth;
    transfer.Real();
    ++preload::t_guard_depth;
    return;
  }
  if (connection_ == kNone && !BecomeDatagrams()) {
    if (IsDatagrams() && transfer.message != nullptr && transfer.message->msg_name != nullptr &&
        !layer_.may_connect_(layer_.engine_, transfer.message->msg_name,
                             transfer.message->msg_namelen)) {
      transfer.result = -1;
      return;
    }
    transfer.result = Fail(ENOTCONN);
    return;
  }
  layer_.Moved();
  const bool may_cut = (transfer.flags & MSG_DONTWAIT) != 0 || IsNonBlocking(transfer.fd);
  ssize_t total = 0;
  for (const iovec& piece : transfer.pieces) {
    if (piece.iov_len == 0) continue;
    const ConnectionScript::Sent sent = layer_.script_.Send(
        connection_, {static_cast<const std::byte*>(piece.iov_base), piece.iov_len},
        may_cut && !IsDatagrams() && transfer.pieces.size() == 1);
    if (!sent.difference.empty()) layer_.Tell(sent.difference);
    if (sent.result < 0) {
      if (total == 0) {
        total = -1;
        errno = sent.error;
      }
      break;
    }
    total += sent.result;
    if (static_cast<size_t>(sent.result) < piece.iov_len) break;
  }
  const int error = errno;
  layer_.Refresh();
  lock.unlock();
  transfer.result = total;
  if (total < 0 && error == EPIPE && (transfer.flags & MSG_NOSIGNAL) == 0) raise(SIGPIPE);
  if (total < 0) errno = error;
}

void ServedSocket::OnUnused() {
  Guard guard;
  const int saved_errno = errno;
  if (!layer_.abandoned()) {
    std::lock_guard<std::mutex> lock(layer_.mutex_);
    for (uint32_t c : {connection_, bound_}) {
      if (c == kNone || live_) continue;
      layer_.by_connection_[c] = nullptr;
      const std::string difference = layer_.script_.Close(c);
      if (!difference.empty()) layer_.Tell(difference);
    }
    std::erase(layer_.listeners_, this);
    layer_.Moved();
    layer_.Refresh();
  }
  for (const OwnConnection& own : own_) close(own.end);
  own_.clear();
  if (inner_ >= 0) close(inner_);
  inner_ = -1;
  errno = saved_errno;
}

// Makes the program's end and the listener's next one the two ends of one pair.
int ServedSocket::ConnectOwn(ServedSocket& listener, const SocketAddress& target,
                             uint32_t planned) {
  live_ = true;
  remote_ = target;
  if (planned != kNone) local_.Set(layer_.script_.Info(planned).local);
  listener.own_.push_back({inner_, local_, remote_});
  inner_ = -1;
  layer_.Moved();
  layer_.Refresh(listener);
  return 0;
}

// Outside, with leave: a socket of the kernel takes the place of the pair.
int ServedSocket::ConnectLive(int fd, const SocketAddress& target) {
  const int status = fcntl(fd, F_GETFL);
  const int marks = fcntl(fd, F_GETFD);
  const int outside = real::Socket(domain_, type_ | (marks != 0 ? SOCK_CLOEXEC : 0), protocol_);
  if (outside < 0) return -1;
  // Not by the hook: the descriptor goes on leading to this object.
  syscall(SYS_dup3, outside, fd, (marks & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  close(outside);
  fcntl(fd, F_SETFL, status);
  live_ = true;
  return real::Connect(fd, reinterpret_cast<const sockaddr*>(target.bytes), target.size);
}

int ServedSocket::OnConnect(int fd, const sockaddr* address, socklen_t size) {
  SocketAddress target;
  target.Set(address, size);
  Guard guard;
  if (layer_.abandoned())
    return layer_.may_connect_(layer_.engine_, address, size) ? real::Connect(fd, address, size)
                                                              : -1;
  std::unique_lock<std::mutex> lock(layer_.mutex_);
  if (target.family() == AF_UNSPEC) return 0;
  if (type_ != SOCK_DGRAM && (connection_ != kNone || live_)) return Fail(EISCONN);
  const char* thread = preload::Self().name;
  const auto name =
      ConnectionName::Connect(target, layer_.Number(Key("connect", thread, target)), thread);
  const uint32_t planned = layer_.script_.Find(name.text);
  ServedSocket* listener = layer_.ListenerAt(target);
  layer_.Moved();
  if (planned == kNone) {
    if (listener != nullptr && type_ != SOCK_DGRAM) return ConnectOwn(*listener, target, kNone);
    lock.unlock();
    if (!layer_.may_connect_(layer_.engine_, address, size)) return -1;
    lock.lock();
    return ConnectLive(fd, target);
  }
  const PlannedConnection& info = layer_.script_.Info(planned);
  const bool goes_on = info.error == EINPROGRESS || info.error == EINTR;
  if (info.own) {
    if (listener == nullptr) return Fail(ECONNREFUSED);
    ConnectOwn(*listener, target, planned);
  } else if (info.result >= 0 || goes_on) {
    Lead(planned);
  }
  if (info.result < 0) return Fail(info.error);
  return 0;
}

int ServedSocket::OnBind(int fd, const sockaddr* address, socklen_t size) {
  Guard guard;
  if (layer_.abandoned()) return real::Bind(fd, address, size);
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  const char* thread = preload::Self().name;
  const auto name = ConnectionName::Bind(layer_.Number(Key("bind", thread, {})), thread);
  const uint32_t planned = layer_.script_.Find(name.text);
  local_.Set(address, size);
  if (planned == kNone) {
    MakeName(local_);
    return 0;
  }
  const PlannedConnection& info = layer_.script_.Info(planned);
  if (info.result < 0) return Fail(info.error);
  MakeName(local_);
  local_.Set(info.local);
  bound_ = planned;
  layer_.by_connection_[planned] = this;
  return 0;
}

int ServedSocket::OnListen(int fd, int backlog) {
  Guard guard;
  if (layer_.abandoned()) return real::Listen(fd, backlog);
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  if (bound_ == kNone && local_.size == 0) {
    const char* thread = preload::Self().name;
    const auto name = ConnectionName::Bind(layer_.Number(Key("bind", thread, {})), thread);
    bound_ = layer_.script_.Find(name.text);
    if (bound_ != kNone) {
      local_.Set(layer_.script_.Info(bound_).local);
      layer_.by_connection_[bound_] = this;
    }
  }
  if (!listening_) layer_.listeners_.push_back(this);
  listening_ = true;
  layer_.Refresh(*this);
  return 0;
}

int ServedSocket::AcceptOwn(OwnConnection own, sockaddr* address, socklen_t* size, int flags) {
  const int fd = fcntl(own.end, (flags & SOCK_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  close(own.end);
  if (fd < 0) return -1;
  fcntl(fd, F_SETFL, O_RDWR | ((flags & SOCK_NONBLOCK) != 0 ? O_NONBLOCK : 0));
  auto* made = new ServedSocket(layer_, domain_, type_, protocol_, -1);
  made->live_ = true;
  made->local_ = own.to;
  made->remote_ = own.from;
  preload::FdTable::Set(fd, made);
  if (address != nullptr) own.from.CopyTo(address, size);
  return fd;
}

bool ServedSocket::TryAccept(int fd, sockaddr* address, socklen_t* size, int flags, int& accepted) {
  if (!IsReady()) return false;
  ConnectionScript& script = layer_.script_;
  layer_.Moved();
  TakeToken(fd);
  const ConnectionScript::Chunk* next = bound_ == kNone ? nullptr : script.Next(bound_);
  if (next == nullptr) {
    const OwnConnection own = own_.front();
    own_.pop_front();
    accepted = AcceptOwn(own, address, size, flags);
  } else {
    const uint32_t planned = next->accepted;
    const PlannedConnection& info = script.Info(planned);
    OwnConnection own;
    if (info.own && FindOwn(info, true, own)) {
      own.from.Set(info.remote);
      own.to.Set(info.local);
      accepted = AcceptOwn(own, address, size, flags);
    } else {
      ServedSocket* made = layer_.NewSocket(flags, accepted);
      if (made != nullptr) {
        made->domain_ = domain_;
        made->type_ = type_;
        made->protocol_ = protocol_;
        made->Lead(planned);
        preload::FdTable::Set(accepted, made);
        if (address != nullptr) made->remote_.CopyTo(address, size);
      }
    }
    script.Take(bound_, 0, true);
  }
  layer_.Refresh(*this);
  layer_.Refresh();
  return true;
}

int ServedSocket::OnAccept(int fd, sockaddr* address, socklen_t* size, int flags) {
  for (;;) {
    {
      Guard guard;
      if (layer_.abandoned()) return Fail(ECONNABORTED);
      std::lock_guard<std::mutex> lock(layer_.mutex_);
      if (!listening_ || read_shut_) return Fail(EINVAL);
      int accepted = -1;
      if (TryAccept(fd, address, size, flags, accepted)) return accepted;
      layer_.StartPacer();
    }
    ssize_t result = 0;
    if (!Wait(fd, 0, result)) return -1;
  }
}

int ServedSocket::OnShutdown(int fd, int how) {
  Guard guard;
  if (layer_.abandoned()) return real::Shutdown(fd, how);
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  if (connection_ == kNone && !live_ && !listening_) return Fail(ENOTCONN);
  if (how != SHUT_WR) read_shut_ = true;
  real::Shutdown(fd, how);
  return 0;
}

int ServedSocket::OnGetName(int fd, bool of_peer, sockaddr* address, socklen_t* size) {
  Guard guard;
  if (layer_.abandoned()) return real::GetName(fd, of_peer, address, size);
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  if (address == nullptr || size == nullptr) return Fail(EFAULT);
  if (of_peer) {
    if (remote_.size == 0 || (connection_ == kNone && !live_)) return Fail(ENOTCONN);
    remote_.CopyTo(address, size);
    return 0;
  }
  if (local_.size == 0) {
    // A socket that nobody has named: its family, and zeros.
    const char zeros[sizeof(sockaddr_storage)] = {};
    const size_t full = domain_ == AF_INET ? 16 : domain_ == AF_INET6 ? 28 : sizeof(sa_family_t);
    local_.Set(zeros, full);
    const auto family = static_cast<sa_family_t>(domain_);
    std::memcpy(local_.bytes, &family, sizeof family);
    local_.CopyTo(address, size);
    local_.size = 0;
    return 0;
  }
  local_.CopyTo(address, size);
  return 0;
}

int ServedSocket::EmulateGetOption(int level, int name, void* value, socklen_t* size) {
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  int number = 0;
  if (level == SOL_SOCKET && name == SO_TYPE) {
    number = type_;
  } else if (level == SOL_SOCKET && name == SO_DOMAIN) {
    number = domain_;
  } else if (level == SOL_SOCKET && name == SO_PROTOCOL) {
    number = protocol_;
  } else if (level == SOL_SOCKET && name == SO_ACCEPTCONN) {
    number = listening_ ? 1 : 0;
  } else if (level == SOL_SOCKET && name == SO_ERROR) {
    number = connection_ != kNone && !live_ ? layer_.script_.TakeState(connection_) : 0;
  } else if (auto it = options_.find({level, name}); it != options_.end()) {
    const size_t n = std::min<size_t>(*size, it->second.size());
    std::memcpy(value, it->second.data(), n);
    *size = static_cast<socklen_t>(n);
    return 0;
  }
  const size_t n = std::min<size_t>(*size, sizeof number);
  std::memcpy(value, &number, n);
  *size = static_cast<socklen_t>(n);
  return 0;
}

int ServedSocket::OnGetOption(int fd, int level, int name, void* value, socklen_t* size) {
  if (value == nullptr || size == nullptr) return Fail(EFAULT);
  const bool own_answer =
      level == SOL_SOCKET && (name == SO_TYPE || name == SO_DOMAIN || name == SO_PROTOCOL ||
                              name == SO_ACCEPTCONN || name == SO_ERROR);
  preload::Engine* engine = own_answer || layer_.abandoned() ? nullptr : preload::EngineForHook();
  if (engine == nullptr) {
    Guard guard;
    if (layer_.abandoned()) return real::GetOption(fd, level, name, value, size);
    return EmulateGetOption(level, name, value, size);
  }
  const uint64_t key = static_cast<uint64_t>(level) << 32 | static_cast<uint32_t>(name);
  const preload::InputCall taken = preload::TakeInputCall(
      *engine, preload::LibcApi::kgetsockopt, key, preload::BytesOf(value, *size),
      [&](preload::InputCall& call) {
        const bool known =
            level == SOL_SOCKET && real::GetOption(fd, level, name, value, size) == 0;
        call.result = known ? 0 : EmulateGetOption(level, name, value, size);
        call.produced = *size;
      });
  if (taken.result == 0) *size = static_cast<socklen_t>(taken.produced);
  return static_cast<int>(taken.result);
}

// The pair takes what concerns waiting; the rest is remembered, for those who ask.
int ServedSocket::OnSetOption(int fd, int level, int name, const void* value, socklen_t size) {
  Guard guard;
  if (layer_.abandoned()) return real::SetOption(fd, level, name, value, size);
  if (level == SOL_SOCKET) real::SetOption(fd, level, name, value, size);
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  const char* bytes = static_cast<const char*>(value);
  constexpr socklen_t kMost = 256;
  if (bytes != nullptr && size <= kMost) options_[{level, name}].assign(bytes, bytes + size);
  return 0;
}

int ServedSocket::OnBytesWaiting(int fd, int* bytes) {
  Guard guard;
  if (layer_.abandoned()) return real::BytesWaiting(fd, bytes);
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  if (live_) return real::BytesWaiting(fd, bytes);
  *bytes = 0;
  if (connection_ == kNone || !layer_.script_.IsDue(connection_)) return 0;
  const ConnectionScript::Chunk* next = layer_.script_.Next(connection_);
  if (next->transfer->result > 0)
    *bytes = static_cast<int>(next->transfer->result) -
             static_cast<int>(layer_.script_.Taken(connection_));
  return 0;
}

}  // namespace deja::replayer
