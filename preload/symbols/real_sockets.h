// The C library's own socket functions, for the engines. No hook of ours is on the way: they may be
// called with or without the guard. Any thread.
#ifndef DEJA_PRELOAD_SYMBOLS_REAL_SOCKETS_H_
#define DEJA_PRELOAD_SYMBOLS_REAL_SOCKETS_H_

#include <sys/socket.h>
#include <sys/types.h>

namespace deja::preload::real {

int Socket(int domain, int type, int protocol);
// As connect, bind and so on; they set errno.
int Connect(int fd, const sockaddr* address, socklen_t size);
int Bind(int fd, const sockaddr* address, socklen_t size);
int Listen(int fd, int backlog);
int Accept(int fd, sockaddr* address, socklen_t* size, int flags);
int Shutdown(int fd, int how);
int GetName(int fd, bool of_peer, sockaddr* address, socklen_t* size);
int GetOption(int fd, int level, int name, void* value, socklen_t* size);
int SetOption(int fd, int level, int name, const void* value, socklen_t size);
ssize_t Recv(int fd, void* buffer, size_t size, int flags);
ssize_t Send(int fd, const void* buffer, size_t size, int flags);
int BytesWaiting(int fd, int* bytes);

}  // namespace deja::preload::real

#endif  // DEJA_PRELOAD_SYMBOLS_REAL_SOCKETS_H_
