// Sockets: where connections begin, and what is asked about them. Descriptors that are not tracked
// cost a load; what is sent and received is in transfer_hooks.cc.
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "preload/calls/connections.h"
#include "preload/calls/socket_calls.h"
#include "preload/hooks/descriptors/tracked.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/real_sockets.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(int, sockaddr*, socklen_t*)> real_accept{"accept"};
constinit RealFn<int (*)(int, unsigned long, void*)> real_ioctl{"ioctl"};

// What `fd` leads to, if that is a connection and this call is the program's.
ConnectionObject* TrackedConnection(int fd) {
  FdObject* object = Tracked(fd);
  if (object == nullptr || object->kind() != FdObject::Kind::kConnection) return nullptr;
  return static_cast<ConnectionObject*>(object);
}

// A descriptor whose making no hook has seen.
int ConnectUntracked(int fd, const sockaddr* address, socklen_t size) {
  if (Engine* engine = EngineForHook()) {
    Guard guard;
    if (!engine->sockets->MayConnect(fd, address, size)) return -1;
  }
  return real::Connect(fd, address, size);
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int socket(int domain, int type, int protocol) noexcept {
  Engine* engine = EngineForHook();
  ConnectionLayer* layer = engine != nullptr ? engine->sockets->Connections() : nullptr;
  if (layer == nullptr) return real::Socket(domain, type, protocol);
  return layer->OnSocket(domain, type, protocol);
}

DEJA_EXPORT int connect(int fd, const sockaddr* address, socklen_t size) {
  ConnectionObject* object = TrackedConnection(fd);
  if (object == nullptr) return ConnectUntracked(fd, address, size);
  return object->OnConnect(fd, address, size);
}

DEJA_EXPORT int bind(int fd, const sockaddr* address, socklen_t size) noexcept {
  ConnectionObject* object = TrackedConnection(fd);
  if (object == nullptr) return real::Bind(fd, address, size);
  return object->OnBind(fd, address, size);
}

DEJA_EXPORT int listen(int fd, int backlog) noexcept {
  ConnectionObject* object = TrackedConnection(fd);
  return object == nullptr ? real::Listen(fd, backlog) : object->OnListen(fd, backlog);
}

DEJA_EXPORT int accept(int fd, sockaddr* address, socklen_t* size) {
  ConnectionObject* object = TrackedConnection(fd);
  if (object == nullptr) return real_accept(fd, address, size);
  return object->OnAccept(fd, address, size, 0);
}

DEJA_EXPORT int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  ConnectionObject* object = TrackedConnection(fd);
  if (object == nullptr) return real::Accept(fd, address, size, flags);
  return object->OnAccept(fd, address, size, flags);
}

DEJA_EXPORT int shutdown(int fd, int how) noexcept {
  ConnectionObject* object = TrackedConnection(fd);
  return object == nullptr ? real::Shutdown(fd, how) : object->OnShutdown(fd, how);
}

DEJA_EXPORT int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept {
  ConnectionObject* object = TrackedConnection(fd);
  if (object == nullptr) return real::GetName(fd, false, address, size);
  return object->OnGetName(fd, false, address, size);
}

DEJA_EXPORT int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept {
  ConnectionObject* object = TrackedConnection(fd);
  if (object == nullptr) return real::GetName(fd, true, address, size);
  return object->OnGetName(fd, true, address, size);
}

DEJA_EXPORT int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  ConnectionObject* object = TrackedConnection(fd);
  if (object == nullptr) return real::GetOption(fd, level, name, value, size);
  return object->OnGetOption(fd, level, name, value, size);
}

DEJA_EXPORT int setsockopt(int fd, int level, int name, const void* value,
                           socklen_t size) noexcept {
  ConnectionObject* object = TrackedConnection(fd);
  if (object == nullptr) return real::SetOption(fd, level, name, value, size);
  return object->OnSetOption(fd, level, name, value, size);
}

// The argument of every request fits a pointer; one that takes none ignores it.
DEJA_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == FIONREAD && argument != nullptr) {
    ConnectionObject* object = TrackedConnection(fd);
    if (object != nullptr) return object->OnBytesWaiting(fd, static_cast<int*>(argument));
  }
  return real_ioctl(fd, request, argument);
}
