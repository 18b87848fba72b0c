// Names of connections: the same in every run of a deterministic program, whatever the order of its
// threads. The recorder writes them, the replayer makes them again and looks them up.
//
//   stdin                                   descriptor 0, inherited
//   fd 5                                    another inherited descriptor
//   connect 10.0.0.7:29500 #2 of thread 0   the second attempt of this thread at this address
//   accept 10.0.0.7:29500 #3                the third connection that came in at this address
//   bind #1 of thread 0.2                   the first bind() of this thread
//   datagrams #1 of thread 0                its first datagram socket that it did not connect
//   open /run/commands to read #1 of thread 0   the first time that it opened this FIFO to read
//   stdin from /run/commands                a FIFO with a name that another image of the process,
//                                           or its parent, had opened
//
// A child that was forked with a connection open calls it "inherited " and that name.
//
// Pure functions over caller's memory, no allocation, any thread.
#ifndef DEJA_PRELOAD_MEET_CONNECTION_NAMES_H_
#define DEJA_PRELOAD_MEET_CONNECTION_NAMES_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace deja::preload {

// A socket address by value.
struct SocketAddress {
  char bytes[sizeof(sockaddr_storage)] = {};
  socklen_t size = 0;

  // Copies an address of a system call; longer ones are cut.
  void Set(const void* address, size_t length);
  void Set(std::string_view address) { Set(address.data(), address.size()); }
  [[nodiscard]] std::string_view view() const { return {bytes, size}; }
  // AF_UNSPEC if there is no address.
  [[nodiscard]] int family() const;
  // Port of an Internet address; 0 if there is none.
  [[nodiscard]] uint16_t port() const;
  // Copies to a program's buffer as the kernel does: cut to `*length`, which becomes the real size.
  void CopyTo(sockaddr* address, socklen_t* length) const;
};

// "10.0.0.7:29500", "[::1]:80", "unix /run/x", "unix @name", "no address".
struct AddressText {
  // The address as text, cut to the room.
  explicit AddressText(const SocketAddress& address);
  char text[160];
};

// An address without the zeros at its end: that of a name in the file system is counted or not.
std::string_view WithoutEndingZeros(std::string_view address);

// True if a connection to `target` reaches a socket that is bound to `bound`.
bool Reaches(const SocketAddress& target, const SocketAddress& bound);

struct ConnectionName {
  // Names by origin. `number`: of the thread's calls of that kind; `thread`: the thread's name.
  static ConnectionName Inherited(int fd);
  static ConnectionName Connect(const SocketAddress& address, uint32_t number, const char* thread);
  static ConnectionName Accept(const SocketAddress& local, uint32_t number);
  static ConnectionName Bind(uint32_t number, const char* thread);
  static ConnectionName Datagrams(uint32_t number, const char* thread);
  // A FIFO, opened with open's `flags`.
  static ConnectionName Open(std::string_view path, int flags, uint32_t number, const char* thread);
  // A descriptor that leads to a FIFO with a name.
  static ConnectionName InheritedFifo(int fd, std::string_view path);
  static ConnectionName OfParent(const ConnectionName& name);

  char text[320] = {};
};

// The process that has a connection of this name, or an ancestor, has made it by connect.
bool IsNameOfClient(std::string_view connection);

// Longest path of a FIFO that a name can hold.
inline constexpr size_t kMaxFifoPath = 200;

// What the name of a connection says about a FIFO.
struct FifoName {
  // Parses a ConnectionName's text.
  explicit FifoName(std::string_view connection);
  std::string_view path;  // empty: it is no FIFO with a name
  bool opened = false;    // by this process, and so:
  bool reads = false;
  bool writes = false;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_CONNECTION_NAMES_H_
