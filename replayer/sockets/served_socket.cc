#include "replayer/sockets/served_socket.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "preload/hooks/input.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"
#include "preload/symbols/real_sockets.h"
#include "replayer/core/ending.h"
#include "replayer/meet/collections.h"
#include "replayer/sockets/family_sockets.h"

namespace deja::replayer {

using preload::ConnectionName;
using preload::Guard;
using preload::SocketAddress;
using preload::Transfer;
namespace real = preload::real;

namespace {

// Copies to the pieces, after their first `skip` bytes.
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

bool IsNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
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

// Something can be received (or accepted).
bool ServedSocket::IsReady() {
  ConnectionScript& script = layer_.script_;
  if (!listening_) return connection_ != kNone && script.IsDue(connection_);
  const ConnectionScript::Chunk* next = bound_ == kNone ? nullptr : script.Next(bound_);
  if (next == nullptr) return !own_.empty();
  if (!script.IsDue(bound_)) return false;
  const PlannedConnection& planned = script.Info(next->accepted);
  OwnConnection ignored;
  const bool live = planned.own || script.IsFamily(next->accepted);
  return !live || FindOwn(planned, false, ignored);
}

bool ServedSocket::AtEnd() const {
  const ConnectionScript& script = layer_.script_;
  if (connection_ == kNone || !script.WasEnded(connection_) || !script.IsStream(connection_))
    return false;
  if (script.Next(connection_) == nullptr) return true;
  return script.IsDue(connection_) && script.OnlyEndsLeft(connection_);
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
  const size_t room = preload::SizeOf(pieces) - skip;
  bytes = bytes.substr(0, room);
  Scatter(bytes, pieces, skip);
  return bytes.size();
}

bool ServedSocket::TryRead(Transfer& transfer) {
  const size_t before = layer_.script_.MadeOf(connection_);
  if (!TakeDue(transfer)) return false;
  layer_.CountCalls(connection_, layer_.script_.MadeOf(connection_) - before);
  return true;
}

bool ServedSocket::TakeDue(Transfer& transfer) {
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
  const size_t room = preload::SizeOf(transfer.pieces);
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
  return WaitForByte(fd);
}

bool ServedSocket::BecomeDatagrams() {
  if (connection_ != kNone) return true;
  if (!IsDatagrams()) return false;
  if (bound_ != kNone) {
    Lead(bound_);
    return true;
  }
  const char* thread = preload::Self().name;
  const auto name = ConnectionName::Datagrams(layer_.Number("datagrams", thread, {}), thread);
  const uint32_t found = layer_.script_.Find(name.text);
  if (found == kNone) return false;
  Lead(found);
  return true;
}

void ServedSocket::OnRead(Transfer& transfer) {
  GiveCollections(layer_.session_, Collections::Place::kTransfer);
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
        EndUntaken();
        if (FailsLive(transfer, format::TransferKind::kReceived)) return;
        lock.unlock();
        --preload::t_guard_depth;
        transfer.Real();
        ++preload::t_guard_depth;
        AfterLiveRead(transfer);
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
      const ErrnoKeeper keep;
      std::lock_guard<std::mutex> lock(layer_.mutex_);
      --waiting_;
      return;
    }
  }
}

void ServedSocket::OnWrite(Transfer& transfer) {
  GiveCollections(layer_.session_, Collections::Place::kTransfer);
  Guard guard;
  if (layer_.abandoned() && !live_) {
    transfer.result = Fail(ECONNRESET);
    return;
  }
  std::unique_lock<std::mutex> lock(layer_.mutex_);
  if (live_) {
    if (FailsLive(transfer, format::TransferKind::kSent)) return;
    lock.unlock();
    --preload::t_guard_depth;
    transfer.Real();
    ++preload::t_guard_depth;
    AfterLiveWrite(transfer);
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
  const size_t before = layer_.script_.MadeOf(connection_);
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
  const size_t made = layer_.script_.MadeOf(connection_) - before;
  // The last recorded error stays.
  layer_.CountCalls(connection_, total < 0 ? std::max<size_t>(made, 1) : made);
  layer_.Refresh();
  lock.unlock();
  transfer.result = total;
  if (total < 0 && error == EPIPE && (transfer.flags & MSG_NOSIGNAL) == 0) raise(SIGPIPE);
  if (total < 0) errno = error;
}

void ServedSocket::OnUnused(int) {
  Guard guard;
  const ErrnoKeeper keep;
  if (!layer_.abandoned()) {
    std::lock_guard<std::mutex> lock(layer_.mutex_);
    for (uint32_t c : {connection_, bound_}) {
      if (c == kNone || live_) continue;
      layer_.by_connection_[c] = nullptr;
      const std::string difference = layer_.script_.Close(c);
      if (!difference.empty()) layer_.Tell(difference);
    }
    std::erase(layer_.listeners_, this);
    if (family_listener_ >= 0) EndFamilyListener(family_listener_);
    family_listener_ = -1;
    listening_ = false;
    layer_.Moved();
    layer_.Refresh();
  }
  for (const OwnConnection& own : own_) close(own.end);
  own_.clear();
  if (inner_ >= 0) close(inner_);
  inner_ = -1;
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
    // A socket without a name: its family, and zeros.
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
  const preload::InputCall taken = preload::TakeInputCall(
      *engine, api::LibcApi::kgetsockopt, set_options_.KeyOf(level, name),
      preload::BytesOf(value, *size), [&](preload::InputCall& call) {
        const bool known =
            level == SOL_SOCKET && real::GetOption(fd, level, name, value, size) == 0;
        call.result = known ? 0 : EmulateGetOption(level, name, value, size);
        call.produced = *size;
      });
  if (taken.result == 0) *size = static_cast<socklen_t>(taken.produced);
  return static_cast<int>(taken.result);
}

// The pair takes what concerns waiting; the rest is remembered, for later questions.
int ServedSocket::OnSetOption(int fd, int level, int name, const void* value, socklen_t size) {
  Guard guard;
  if (layer_.abandoned()) return real::SetOption(fd, level, name, value, size);
  if (level == SOL_SOCKET) real::SetOption(fd, level, name, value, size);
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  const char* bytes = static_cast<const char*>(value);
  constexpr socklen_t kMost = 256;
  if (bytes != nullptr && size <= kMost) options_[{level, name}].assign(bytes, bytes + size);
  set_options_.Set(level, name, value, size);
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
