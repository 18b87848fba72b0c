#include "preload/symbols/real_sockets.h"

#include <sys/ioctl.h>

#include "preload/symbols/real_symbols.h"

namespace deja::preload::real {
namespace {

constinit RealFn<int (*)(int, int, int)> socket_fn{"socket"};
constinit RealFn<int (*)(int, const sockaddr*, socklen_t)> connect_fn{"connect"};
constinit RealFn<int (*)(int, const sockaddr*, socklen_t)> bind_fn{"bind"};
constinit RealFn<int (*)(int, int)> listen_fn{"listen"};
constinit RealFn<int (*)(int, sockaddr*, socklen_t*, int)> accept4_fn{"accept4"};
constinit RealFn<int (*)(int, int)> shutdown_fn{"shutdown"};
constinit RealFn<int (*)(int, sockaddr*, socklen_t*)> getsockname_fn{"getsockname"};
constinit RealFn<int (*)(int, sockaddr*, socklen_t*)> getpeername_fn{"getpeername"};
constinit RealFn<int (*)(int, int, int, void*, socklen_t*)> getsockopt_fn{"getsockopt"};
constinit RealFn<int (*)(int, int, int, const void*, socklen_t)> setsockopt_fn{"setsockopt"};
constinit RealFn<ssize_t (*)(int, void*, size_t, int)> recv_fn{"recv"};
constinit RealFn<ssize_t (*)(int, const void*, size_t, int)> send_fn{"send"};
constinit RealFn<int (*)(int, unsigned long, void*)> ioctl_fn{"ioctl"};

}  // namespace

int Socket(int domain, int type, int protocol) {
  return socket_fn(domain, type, protocol);
}
int Connect(int fd, const sockaddr* address, socklen_t size) {
  return connect_fn(fd, address, size);
}
int Bind(int fd, const sockaddr* address, socklen_t size) {
  return bind_fn(fd, address, size);
}
int Listen(int fd, int backlog) {
  return listen_fn(fd, backlog);
}
int Accept(int fd, sockaddr* address, socklen_t* size, int flags) {
  return accept4_fn(fd, address, size, flags);
}
int Shutdown(int fd, int how) {
  return shutdown_fn(fd, how);
}
int GetName(int fd, bool of_peer, sockaddr* address, socklen_t* size) {
  return of_peer ? getpeername_fn(fd, address, size) : getsockname_fn(fd, address, size);
}
int GetOption(int fd, int level, int name, void* value, socklen_t* size) {
  return getsockopt_fn(fd, level, name, value, size);
}
int SetOption(int fd, int level, int name, const void* value, socklen_t size) {
  return setsockopt_fn(fd, level, name, value, size);
}
ssize_t Recv(int fd, void* buffer, size_t size, int flags) {
  return recv_fn(fd, buffer, size, flags);
}
ssize_t Send(int fd, const void* buffer, size_t size, int flags) {
  return send_fn(fd, buffer, size, flags);
}
int BytesWaiting(int fd, int* bytes) {
  return ioctl_fn(fd, FIONREAD, static_cast<void*>(bytes));
}

}  // namespace deja::preload::real
