// What is written, sent and received by descriptor. Calls on descriptors that are not tracked go
// straight to the real functions. (The variants of read are in read_hooks.cc, streams in
// stream_hooks.cc, copies between descriptors in copy_hooks.cc.)
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "preload/hooks/child_signal_places.h"
#include "preload/hooks/descriptors/entropy_files.h"
#include "preload/hooks/descriptors/tracked.h"
#include "preload/hooks/export.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<ssize_t (*)(int, const void*, size_t)> real_write{"write"};
constinit RealFn<ssize_t (*)(int, const iovec*, int)> real_writev{"writev"};
constinit RealFn<ssize_t (*)(int, const void*, size_t, int)> real_send{"send"};
constinit RealFn<ssize_t (*)(int, const void*, size_t, int, const sockaddr*, socklen_t)>
    real_sendto{"sendto"};
constinit RealFn<ssize_t (*)(int, const msghdr*, int)> real_sendmsg{"sendmsg"};
constinit RealFn<int (*)(int, mmsghdr*, unsigned, int)> real_sendmmsg{"sendmmsg"};
constinit RealFn<ssize_t (*)(int, void*, size_t, int)> real_recv{"recv"};
constinit RealFn<ssize_t (*)(int, void*, size_t, size_t, int)> real_recv_chk{"__recv_chk"};
constinit RealFn<ssize_t (*)(int, void*, size_t, int, sockaddr*, socklen_t*)> real_recvfrom{
    "recvfrom"};
constinit RealFn<ssize_t (*)(int, void*, size_t, size_t, int, sockaddr*, socklen_t*)>
    real_recvfrom_chk{"__recvfrom_chk"};
constinit RealFn<ssize_t (*)(int, msghdr*, int)> real_recvmsg{"recvmsg"};
constinit RealFn<int (*)(int, mmsghdr*, unsigned, int, timespec*)> real_recvmmsg{"recvmmsg"};

struct Parameters {
  api::LibcApi api;
  int fd;
  int flags = 0;
  msghdr* message = nullptr;
};

// `real(pieces, count, flags)` makes the call.
template <typename Real>
Transfer Prepare(const Parameters& p, std::span<const iovec> pieces, Real& real) {
  Transfer transfer{.api = p.api, .fd = p.fd, .pieces = pieces};
  transfer.flags = p.flags;
  transfer.message = p.message;
  transfer.context = &real;
  transfer.real = [](Transfer& t, void* context) {
    t.result = (*static_cast<Real*>(context))(t.pieces.data(), t.pieces.size(), t.flags);
  };
  return transfer;
}

template <typename Real>
ssize_t Send(FdObject& object, const Parameters& p, std::span<const iovec> pieces, Real real) {
  Transfer transfer = Prepare(p, pieces, real);
  object.OnWrite(transfer);
  return transfer.result;
}

template <typename Real>
ssize_t Receive(FdObject& object, const Parameters& p, std::span<const iovec> pieces, Real real) {
  Transfer transfer = Prepare(p, pieces, real);
  object.OnRead(transfer);
  return transfer.result;
}

iovec PieceOf(const void* data, size_t size) {
  return {const_cast<void*>(data), size};
}

std::span<const iovec> PiecesOf(const msghdr& message) {
  return {message.msg_iov, message.msg_iov == nullptr ? 0 : message.msg_iovlen};
}

ssize_t ReceiveFrom(FdObject& object, int fd, void* buffer, size_t size, int flags,
                    sockaddr* address, socklen_t* length) {
  const iovec piece{buffer, size};
  msghdr message{};
  message.msg_name = length != nullptr ? address : nullptr;
  message.msg_namelen = length != nullptr ? *length : 0;
  const ssize_t n = Receive(object, {api::LibcApi::krecvfrom, fd, flags, &message}, {&piece, 1},
                            [&](const iovec* p, size_t, int f) {
                              socklen_t room = message.msg_namelen;
                              const ssize_t got =
                                  real_recvfrom(fd, p->iov_base, p->iov_len, f,
                                                static_cast<sockaddr*>(message.msg_name),
                                                message.msg_name != nullptr ? &room : nullptr);
                              message.msg_namelen = room;
                              return got;
                            });
  if (n >= 0 && length != nullptr) *length = message.msg_namelen;
  return n;
}

ssize_t SendMessage(FdObject& object, int fd, const msghdr* message, int flags) {
  msghdr copy = *message;
  return Send(object, {api::LibcApi::ksendmsg, fd, flags, &copy}, PiecesOf(*message),
              [&](const iovec*, size_t, int f) { return real_sendmsg(fd, message, f); });
}

ssize_t ReceiveMessage(FdObject& object, int fd, msghdr* message, int flags) {
  const ssize_t n =
      Receive(object, {api::LibcApi::krecvmsg, fd, flags, message}, PiecesOf(*message),
              [&](const iovec*, size_t, int f) { return real_recvmsg(fd, message, f); });
  if (n >= 0) NoteReceivedDescriptors(*message);
  return n;
}

constexpr int64_t kSecondNs = 1000000000;

// A reading of the program's clock: a replay decides by the recorded one.
int64_t ProgramClockNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT ssize_t write(int fd, const void* data, size_t size) {
  FileCall counted;
  return counted.Make([=]() -> ssize_t {
    FdObject* object = Tracked(fd);
    if (object == nullptr) return real_write(fd, data, size);
    const iovec piece = PieceOf(data, size);
    return Send(
        *object, {deja::api::LibcApi::kwrite, fd}, {&piece, 1},
        [fd](const iovec* p, size_t, int) { return real_write(fd, p->iov_base, p->iov_len); });
  });
}

DEJA_EXPORT ssize_t writev(int fd, const iovec* pieces, int count) {
  FdObject* object = pieces != nullptr && count > 0 ? Tracked(fd) : nullptr;
  if (object == nullptr) return real_writev(fd, pieces, count);
  return Send(
      *object, {deja::api::LibcApi::kwritev, fd}, {pieces, static_cast<size_t>(count)},
      [fd](const iovec* p, size_t n, int) { return real_writev(fd, p, static_cast<int>(n)); });
}

DEJA_EXPORT ssize_t send(int fd, const void* data, size_t size, int flags) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_send(fd, data, size, flags);
  const iovec piece = PieceOf(data, size);
  return Send(
      *object, {deja::api::LibcApi::ksend, fd, flags}, {&piece, 1},
      [fd](const iovec* p, size_t, int f) { return real_send(fd, p->iov_base, p->iov_len, f); });
}

DEJA_EXPORT ssize_t sendto(int fd, const void* data, size_t size, int flags,
                           const sockaddr* address, socklen_t length) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_sendto(fd, data, size, flags, address, length);
  const iovec piece = PieceOf(data, size);
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(address);
  message.msg_namelen = address != nullptr ? length : 0;
  return Send(*object, {deja::api::LibcApi::ksendto, fd, flags, &message}, {&piece, 1},
              [&](const iovec* p, size_t, int f) {
                return real_sendto(fd, p->iov_base, p->iov_len, f, address, length);
              });
}

DEJA_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  FdObject* object = message != nullptr ? Tracked(fd) : nullptr;
  if (object == nullptr) return real_sendmsg(fd, message, flags);
  return SendMessage(*object, fd, message, flags);
}

DEJA_EXPORT int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  FdObject* object = messages != nullptr ? Tracked(fd) : nullptr;
  if (object == nullptr) return real_sendmmsg(fd, messages, count, flags);
  int done = 0;
  for (unsigned i = 0; i < count; ++i, ++done) {
    const ssize_t sent = SendMessage(*object, fd, &messages[i].msg_hdr, flags);
    if (sent < 0) return done == 0 ? -1 : done;
    messages[i].msg_len = static_cast<unsigned>(sent);
  }
  return done;
}

DEJA_EXPORT ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_recv(fd, buffer, size, flags);
  const iovec piece{buffer, size};
  return Receive(
      *object, {deja::api::LibcApi::krecv, fd, flags}, {&piece, 1},
      [fd](const iovec* p, size_t, int f) { return real_recv(fd, p->iov_base, p->iov_len, f); });
}

DEJA_EXPORT ssize_t __recv_chk(int fd, void* buffer, size_t size, size_t room, int flags) {
  if (size > room || Tracked(fd) == nullptr) return real_recv_chk(fd, buffer, size, room, flags);
  return recv(fd, buffer, size, flags);
}

DEJA_EXPORT ssize_t recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* address,
                             socklen_t* length) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_recvfrom(fd, buffer, size, flags, address, length);
  return ReceiveFrom(*object, fd, buffer, size, flags, address, length);
}

DEJA_EXPORT ssize_t __recvfrom_chk(int fd, void* buffer, size_t size, size_t room, int flags,
                                   sockaddr* address, socklen_t* length) {
  if (size > room || Tracked(fd) == nullptr)
    return real_recvfrom_chk(fd, buffer, size, room, flags, address, length);
  return recvfrom(fd, buffer, size, flags, address, length);
}

DEJA_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  FdObject* object = message != nullptr ? Tracked(fd) : nullptr;
  if (object == nullptr) {
    const ssize_t n = real_recvmsg(fd, message, flags);
    if (n >= 0 && message != nullptr && !InsideDeja()) NoteReceivedDescriptors(*message);
    return n;
  }
  return ReceiveMessage(*object, fd, message, flags);
}

// One by one. As the kernel does it, the time limit is looked at after each message only; what is
// left of it is written back.
DEJA_EXPORT int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  FdObject* object = messages != nullptr ? Tracked(fd) : nullptr;
  if (object == nullptr) return real_recvmmsg(fd, messages, count, flags, timeout);
  int done = 0;
  const int64_t end =
      timeout != nullptr ? ProgramClockNs() + timeout->tv_sec * kSecondNs + timeout->tv_nsec : 0;
  for (unsigned i = 0; i < count; ++i, ++done) {
    if (i > 0 && timeout != nullptr) {
      const int64_t left = std::max<int64_t>(0, end - ProgramClockNs());
      *timeout = {static_cast<time_t>(left / kSecondNs), static_cast<long>(left % kSecondNs)};
      if (left == 0) return done;
    }
    int f = flags & ~MSG_WAITFORONE;
    if (i > 0 && (flags & MSG_WAITFORONE) != 0) f |= MSG_DONTWAIT;
    const ssize_t got = ReceiveMessage(*object, fd, &messages[i].msg_hdr, f);
    if (got < 0) return done == 0 ? -1 : done;
    messages[i].msg_len = static_cast<unsigned>(got);
  }
  return done;
}
