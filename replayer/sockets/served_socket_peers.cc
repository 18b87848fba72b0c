// Whom a served socket leads to: names, connections and listeners.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "common/runtime/clock_ns.h"
#include "common/runtime/errno_keeper.h"
#include "preload/calls/file_calls.h"
#include "preload/engine/engine.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"
#include "preload/symbols/real_sockets.h"
#include "replayer/sockets/family_sockets.h"
#include "replayer/sockets/served_socket.h"

namespace deja::replayer {

using preload::ConnectionName;
using preload::Guard;
using preload::SocketAddress;
namespace real = preload::real;

namespace {

// The file that a Unix socket's name is: programs look at it, change its mode and remove it.
void MakeName(const SocketAddress& address) {
  constexpr size_t kPath = offsetof(sockaddr_un, sun_path);
  if (address.family() != AF_UNIX || address.size <= kPath || address.bytes[kPath] == '\0') return;
  preload::Engine* engine = preload::EngineOfThisProcess();
  const std::string path(address.bytes + kPath,
                         strnlen(address.bytes + kPath, address.size - kPath));
  char buffer[PATH_MAX];
  const char* mapped =
      engine == nullptr
          ? nullptr
          : engine->files->MapPath(AT_FDCWD, path.c_str(), preload::FileUse::kCreate, buffer);
  if (mapped != nullptr && mapped != path.c_str()) mknod(mapped, S_IFSOCK | 0777, 0);
}

}  // namespace

// The connection that the recorded program accepted: by its name, or by the process that it comes
// from. One that has waited for long is taken for any that does not come.
bool ServedSocket::FindOwn(const PlannedConnection& planned, bool take, OwnConnection& found) {
  constexpr uint64_t kPatienceNs = 10'000'000'000;
  const bool named = planned.remote.size() > sizeof(sa_family_t);
  const long client = planned.own ? 0 : strtol(planned.peer.c_str(), nullptr, 10);
  for (auto it = own_.begin(); it != own_.end(); ++it) {
    if (named && it->from.view() != planned.remote) continue;
    if (client != 0 && it->pid != 0 && it->pid != client) {
      if (ClockNs(CLOCK_MONOTONIC) - it->since_ns < kPatienceNs) continue;
      if (take)
        layer_.Tell("connection '" + planned.name + "': process " + std::to_string(client) +
                    " does not come within 10 s; process " + std::to_string(it->pid) +
                    " is accepted in its place");
    }
    found = *it;
    if (take) own_.erase(it);
    return true;
  }
  return false;
}

// Makes the program's end and the listener's next one the two ends of one pair.
int ServedSocket::ConnectOwn(ServedSocket& listener, const SocketAddress& target,
                             uint32_t planned) {
  live_ = true;
  remote_ = target;
  if (planned != kNone) local_.Set(layer_.script_.Info(planned).local);
  listener.own_.push_back({inner_, local_, remote_, 0, ClockNs(CLOCK_MONOTONIC)});
  inner_ = -1;
  layer_.Moved();
  layer_.Refresh(listener);
  return 0;
}

bool ServedSocket::ReplacePair(int fd) {
  const int status = fcntl(fd, F_GETFL);
  const int marks = fcntl(fd, F_GETFD);
  const int made = real::Socket(domain_, type_ | (marks != 0 ? SOCK_CLOEXEC : 0), protocol_);
  if (made < 0) return false;
  // Not by the hook: the descriptor goes on leading to this object.
  syscall(SYS_dup3, made, fd, (marks & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  close(made);
  fcntl(fd, F_SETFL, status);
  return true;
}

// Outside, with leave.
int ServedSocket::ConnectLive(int fd, const SocketAddress& target) {
  if (!ReplacePair(fd)) return -1;
  live_ = true;
  return real::Connect(fd, reinterpret_cast<const sockaddr*>(target.bytes), target.size);
}

int ServedSocket::ConnectFamily(int fd, const SocketAddress& target, int patience_ms,
                                std::unique_lock<std::mutex>& lock) {
  const SocketAddress meeting = FamilyAddress(layer_.session_.options().scratch, target);
  if (!ReplacePair(fd)) return -1;
  lock.unlock();
  const int result = replayer::ConnectFamily(fd, meeting, patience_ms);
  const int error = errno;
  lock.lock();
  errno = error;
  if (result != 0 && error != EINPROGRESS) return result;
  live_ = true;
  remote_ = target;
  layer_.Moved();
  return result;
}

int ServedSocket::ConnectUntaken(int fd, uint32_t planned, const SocketAddress& target) {
  if (!ReplacePair(fd)) return -1;
  const int listener = replayer::ConnectUntaken(fd, type_, layer_.session_.options().scratch);
  if (listener < 0) return -1;
  if (inner_ >= 0) close(inner_);
  inner_ = listener;
  live_ = true;
  untaken_ = planned;
  remote_ = target;
  layer_.Moved();
  return 0;
}

// The process that was to take the connection died. Where it had taken it, the connection ended;
// else it was reset.
void ServedSocket::EndUntaken() {
  const uint32_t planned = std::exchange(untaken_, kNone);
  if (planned == kNone) return;
  if (!layer_.WasReset(planned)) close(real::Accept(inner_, nullptr, nullptr, SOCK_CLOEXEC));
  close(std::exchange(inner_, -1));
}

void ServedSocket::ListenForFamily() {
  if (domain_ != AF_UNIX || type_ == SOCK_DGRAM || local_.size <= sizeof(sa_family_t)) return;
  for_another_ = bound_ != kNone && !layer_.script_.Accepts(bound_) &&
                 layer_.IsAcceptedInRank(layer_.script_.Info(bound_).local);
  if (for_another_) return;
  const SocketAddress meeting = FamilyAddress(layer_.session_.options().scratch, local_);
  family_listener_ = StartFamilyListener(type_, meeting, layer_.mutex_, [this](int fd, int pid) {
    if (!listening_) {
      close(fd);
      return;
    }
    SocketAddress nobody;
    sockaddr unnamed{};
    unnamed.sa_family = AF_UNIX;
    nobody.Set(&unnamed, sizeof(sa_family_t));
    own_.push_back({fd, nobody, local_, pid, ClockNs(CLOCK_MONOTONIC)});
    layer_.Moved();
    layer_.Refresh(*this);
  });
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
      ConnectionName::Connect(target, layer_.Number("connect", thread, target), thread);
  const uint32_t planned = layer_.script_.Find(name.text);
  layer_.Moved();
  if (planned != kNone) {
    const int result = ConnectPlanned(fd, planned, target, lock);
    layer_.CountCalls(planned);
    return result;
  }
  ServedSocket* listener = layer_.ListenerAt(target);
  if (listener != nullptr && type_ != SOCK_DGRAM) return ConnectOwn(*listener, target, kNone);
  if (domain_ == AF_UNIX && type_ != SOCK_DGRAM && ConnectFamily(fd, target, 0, lock) == 0)
    return 0;
  lock.unlock();
  if (!layer_.may_connect_(layer_.engine_, address, size)) return -1;
  lock.lock();
  return ConnectLive(fd, target);
}

int ServedSocket::ConnectPlanned(int fd, uint32_t planned, const SocketAddress& target,
                                 std::unique_lock<std::mutex>& lock) {
  ServedSocket* listener = layer_.ListenerAt(target);
  const PlannedConnection& info = layer_.script_.Info(planned);
  // The accepting process may have much to do before it accepts: a fork server imports modules.
  constexpr int kPatienceMs = 60'000;
  if (layer_.script_.IsFamily(planned)) {
    family_ = planned;
    if (!info.local.empty()) local_.Set(info.local);
    if (layer_.IsNeverTaken(planned)) {
      live_ = true;  // with an end of ours
      remote_ = target;
      return 0;
    }
    return ConnectFamily(fd, target, kPatienceMs, lock);
  }
  const bool goes_on = info.error == EINPROGRESS || info.error == EINTR;
  if (info.own) {
    // Its maker may have closed it, when the process that accepts from it had inherited it.
    const bool is_closed = listener == nullptr && domain_ == AF_UNIX;
    if (is_closed && info.result >= 0 && layer_.IsNotAccepted(planned))
      return ConnectUntaken(fd, planned, target);
    if (is_closed ? layer_.IsAcceptedInRank(info.remote)
                  : listener != nullptr && listener->IsForAnother())
      return ConnectFamily(fd, target, kPatienceMs, lock);
    if (listener == nullptr) return Fail(ECONNREFUSED);
    ConnectOwn(*listener, target, planned);
  } else if (info.result >= 0 || goes_on) {
    Lead(planned);
    layer_.NameForHeirs(fd, *this);
  }
  if (info.result < 0) return Fail(info.error);
  return 0;
}

int ServedSocket::OnBind(int fd, const sockaddr* address, socklen_t size) {
  Guard guard;
  if (layer_.abandoned()) return real::Bind(fd, address, size);
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  const char* thread = preload::Self().name;
  const auto name = ConnectionName::Bind(layer_.Number("bind", thread, {}), thread);
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
    const auto name = ConnectionName::Bind(layer_.Number("bind", thread, {}), thread);
    bound_ = layer_.script_.Find(name.text);
    if (bound_ != kNone) {
      local_.Set(layer_.script_.Info(bound_).local);
      layer_.by_connection_[bound_] = this;
    }
  }
  if (!listening_) {
    layer_.listeners_.push_back(this);
    listening_ = true;
    ListenForFamily();
    layer_.NameForHeirs(fd, *this);
  }
  layer_.Refresh(*this);
  return 0;
}

int ServedSocket::AcceptOwn(OwnConnection own, uint32_t planned, sockaddr* address, socklen_t* size,
                            int flags) {
  const int fd = fcntl(own.end, (flags & SOCK_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  close(own.end);
  if (fd < 0) return -1;
  fcntl(fd, F_SETFL, O_RDWR | ((flags & SOCK_NONBLOCK) != 0 ? O_NONBLOCK : 0));
  auto* made = new ServedSocket(layer_, domain_, type_, protocol_, -1);
  made->live_ = true;
  if (planned != kNone && layer_.script_.IsFamily(planned)) made->family_ = planned;
  made->local_ = own.to;
  made->remote_ = own.from;
  preload::FdTable::Set(fd, made);
  if (address != nullptr) own.from.CopyTo(address, size);
  return fd;
}

bool ServedSocket::FailsLive(preload::Transfer& transfer, format::TransferKind kind) {
  if (family_ == kNone || (transfer.flags & MSG_PEEK) != 0) return false;
  const bool is_sent = kind == format::TransferKind::kSent;
  const auto error =
      layer_.family_order_.FailureAt(family_, kind, is_sent ? family_sent_ : family_received_);
  if (!error) return false;
  layer_.CountCalls(family_);
  layer_.Moved();
  transfer.result = *error == 0 ? 0 : Fail(*error);
  return true;
}

void ServedSocket::AfterLiveRead(const preload::Transfer& transfer) {
  if (family_ == kNone || transfer.result <= 0 || (transfer.flags & MSG_PEEK) != 0) return;
  const ErrnoKeeper keep;
  std::unique_lock<std::mutex> lock(layer_.mutex_);
  layer_.CountCalls(family_);
  family_received_ += static_cast<uint64_t>(transfer.result);
  layer_.family_order_.Received(family_, family_received_);
  layer_.AwaitAnswers(family_, family_received_, lock);
}

void ServedSocket::AfterLiveWrite(const preload::Transfer& transfer) {
  if (family_ == kNone || transfer.result <= 0) return;
  const ErrnoKeeper keep;
  std::lock_guard<std::mutex> lock(layer_.mutex_);
  layer_.CountCalls(family_);
  family_sent_ += static_cast<uint64_t>(transfer.result);
  layer_.family_order_.Sent(family_, family_sent_);
  layer_.Moved();
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
    accepted = AcceptOwn(own, kNone, address, size, flags);
  } else {
    const uint32_t planned = next->accepted;
    const PlannedConnection& info = script.Info(planned);
    OwnConnection own;
    if ((info.own || script.IsFamily(planned)) && FindOwn(info, true, own)) {
      own.from.Set(info.remote);
      own.to.Set(info.local);
      accepted = AcceptOwn(own, planned, address, size, flags);
    } else {
      ServedSocket* made = layer_.NewSocket(flags, accepted);
      if (made != nullptr) {
        made->domain_ = domain_;
        made->type_ = type_;
        made->protocol_ = protocol_;
        made->Lead(planned);
        layer_.NameForHeirs(accepted, *made);
        preload::FdTable::Set(accepted, made);
        if (address != nullptr) made->remote_.CopyTo(address, size);
      }
    }
    script.Take(bound_, 0, true);
    layer_.is_taken_[planned] = true;
    layer_.CountCalls(planned);
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

}  // namespace deja::replayer
