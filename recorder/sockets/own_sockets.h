// OwnSockets: which connections lead from this process to itself, so that both ends run in a replay
// and nothing has to be recorded. And the counters from which connections get their names.
//
// Unix sockets between processes of one rank are live in a replay, too; the process at the other
// end is written down, since only a reader knows which process is the rank.
//
// For TCP: a connection to an address at which this process listens, on one machine. The accepting
// side knows the address of the other end; the connecting side enters it here, and a thread that
// accepts waits for those that are just connecting. Unix sockets name the process at the other end.
// Any thread; locks are held for moments only; memory from mapped_memory.h.
#ifndef DEJA_RECORDER_SOCKETS_OWN_SOCKETS_H_
#define DEJA_RECORDER_SOCKETS_OWN_SOCKETS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "preload/meet/connection_names.h"

namespace deja::recorder {

class Recording;
class RecordedConnection;

// Number of the next connection of `rec`.
uint32_t NextConnection(Recording* rec);
// 1, 2, 3 … for each combination, from 1 in each recording (a forked child has its own).
uint32_t NextNumber(Recording* rec, std::string_view what, std::string_view thread,
                    std::string_view address);

class OwnSockets {
 public:
  // Around a connect().
  class Connecting {
   public:
    explicit Connecting(const preload::SocketAddress& target);
    ~Connecting();
    Connecting(const Connecting&) = delete;
    Connecting& operator=(const Connecting&) = delete;
    // After the call: true if it leads to this process. `made`: it succeeded, or goes on.
    bool Done(int fd, bool made, int domain, uint32_t type);

   private:
    bool possible_ = false;
  };

  // `listener` takes connections at `local`.
  static void Listen(RecordedConnection& listener, const preload::SocketAddress& local);
  // The other end of an accepted connection is in this process.
  static bool IsOwnPeer(int fd, const preload::SocketAddress& peer,
                        const preload::SocketAddress& local);
  // For a connected Unix socket: WriteLineage of the process at the other end; empty: it is not of
  // this tree of processes.
  static std::string_view PeerLineage(int fd, std::span<char> out);
  // A socket that another image of this process, or one that it comes from, has made. Its other end
  // is outside this tree of processes, or on the Internet, where it cannot be known. For a
  // listener, each connection says where it comes from.
  static bool LeadsOutside(int fd);
  static bool IsListener(int fd);
  // The connection, whose local address is `local`, is gone.
  static void Forget(RecordedConnection& connection, const preload::SocketAddress& local);
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_SOCKETS_OWN_SOCKETS_H_
