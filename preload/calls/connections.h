// What the hooks of sockets, pipes and terminals call: connections to what is outside the process.
//
// A ConnectionLayer is an engine's part that makes sockets; a ConnectionObject is what a descriptor
// of a connection leads to (fd_table.h). The recorder's let everything happen and write it down;
// the replayer's answer from the trace and reach no peer. Every function sets errno as the C
// library's of the same name does. Any thread; called without the guard (guard.h), because most of
// them may block, be cancelled or be left by longjmp.
#ifndef DEJA_PRELOAD_CALLS_CONNECTIONS_H_
#define DEJA_PRELOAD_CALLS_CONNECTIONS_H_

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "preload/engine/fd_table.h"

namespace deja::preload {

// Bytes of the program's memory that a transfer reads or writes, of all pieces together.
inline size_t SizeOf(std::span<const iovec> pieces) {
  size_t size = 0;
  for (const iovec& piece : pieces) size += piece.iov_len;
  return size;
}

class ConnectionObject : public FdObject {
 public:
  constexpr ConnectionObject() : FdObject(Kind::kConnection) {}

  // The calls of these names on the descriptor `fd`; they return what the program gets and set
  // errno.
  virtual int OnConnect(int fd, const sockaddr* address, socklen_t size) = 0;
  virtual int OnBind(int fd, const sockaddr* address, socklen_t size) = 0;
  virtual int OnListen(int fd, int backlog) = 0;
  virtual int OnAccept(int fd, sockaddr* address, socklen_t* size, int flags) = 0;
  virtual int OnShutdown(int fd, int how) = 0;
  // getsockname, getpeername.
  virtual int OnGetName(int fd, bool of_peer, sockaddr* address, socklen_t* size) = 0;
  virtual int OnGetOption(int fd, int level, int name, void* value, socklen_t* size) = 0;
  virtual int OnSetOption(int fd, int level, int name, const void* value, socklen_t size) = 0;
  // ioctl(FIONREAD).
  virtual int OnBytesWaiting(int fd, int* bytes) = 0;

 protected:
  ~ConnectionObject() = default;
};

class ConnectionLayer {
 public:
  // Files are copies, and may be elsewhere than they were.
  [[nodiscard]] virtual bool IsReplay() const { return false; }
  virtual int OnSocket(int domain, int type, int protocol) = 0;
  // The program is about to open `path`, relative to `dirfd`, with open's `flags`: what to open in
  // its place; `path` itself: nothing; null with errno set: it may not. Within the guard.
  virtual const char* BeforeOpen(int dirfd, const char* path, int flags) {
    return (void)dirfd, (void)flags, path;
  }
  // And has opened it as `fd`, or failed to, with ENXIO, if that is -1. What the descriptor leads
  // to; null: no connection. Within the guard.
  virtual FdObject* AfterOpen(int dirfd, const char* path, int fd, int flags) {
    return (void)dirfd, (void)path, (void)fd, (void)flags, nullptr;
  }

 protected:
  ~ConnectionLayer() = default;
};

// Descriptors that the C library's streams read and write by themselves are asked about, too, from
// now on (stream_hooks.cc). Once it has happened it stays. False: this C library's streams are not
// as they are known.
bool WatchStreams();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_CONNECTIONS_H_
