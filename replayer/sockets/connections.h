// The replayer's connections: no peer is contacted, everything comes from the trace.
//
// Every socket that the program makes is one end of a socketpair from the beginning, so that what
// it has registered with epoll stays valid. The library holds the other end. A byte lies in the
// program's end exactly while there is something to receive (connection_script.h says when). So
// poll, select and epoll work as they are. The hooks take the byte away with what they hand out.
// What is sent is compared and swallowed. A connection of the program to itself is live: the other
// end of the socketpair is what accept returns. So is a Unix socket between processes of the rank
// (a data loader's worker that passes descriptors to its parent): family_sockets.h.
//
// FIFOs that the program opens, and pipes that it was born with, are pipes with a byte in them
// (served_fifos.cc); those between processes of the rank are live (fifos.h).
//
// One per process, made by the engine, never destroyed. Any thread. One lock for all state, which
// is not held while a thread waits. errno as in the recording.
#ifndef DEJA_REPLAYER_SOCKETS_CONNECTIONS_H_
#define DEJA_REPLAYER_SOCKETS_CONNECTIONS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "preload/calls/connections.h"
#include "preload/meet/connection_names.h"
#include "replayer/core/session.h"
#include "replayer/sockets/connection_script.h"
#include "replayer/sockets/family_order.h"

namespace deja::preload {
class PipeTable;
}

namespace deja::replayer {

class ServedSocket;

class ServedConnections final : public preload::ConnectionLayer, public LateStarter {
 public:
  // `may_connect` decides, and says so, about connections that the recording does not have. `rank`:
  // the folder of the rank that this process is or belongs to. `pipes`: null, or where the rank's
  // own pipes are noted.
  using MayConnect = bool (*)(void* engine, const void* address, uint32_t size);
  ServedConnections(Session& session, MayConnect may_connect, void* engine, const Fifos& fifos,
                    std::string rank, preload::PipeTable* pipes);

  // Puts the recorded standard input and other inherited descriptors in their places.
  void InstallInherited();

  [[nodiscard]] bool IsReplay() const override { return true; }
  int OnSocket(int domain, int type, int protocol) override;
  const char* BeforeOpen(int dirfd, const char* path, int flags) override;
  preload::FdObject* AfterOpen(int dirfd, const char* path, int fd, int flags) override;

  // A replay from a checkpoint: before the jump, what is used after it and not there; and the
  // jump.
  void FindMissing(std::vector<std::string>& problems) override;
  void StartLate(const LateStart& start) override;

  // Threads other than recorded thread `thread` have answered other processes of the rank, and
  // taken their connections, wherever they did in the recording.
  [[nodiscard]] bool AreAnswersGiven(uint32_t thread);
  // So have all, and all that other processes of the rank sent in the recording was received.
  [[nodiscard]] bool IsFamilyServed();

  // In a forked child: it is another process than the one whose connections these are.
  void Abandon() { abandoned_.store(true); }
  [[nodiscard]] bool abandoned() const { return abandoned_.load(); }

 private:
  friend class ServedSocket;

  // All with mutex_ held, within the guard.
  uint32_t Number(const char* what, const char* thread, const preload::SocketAddress& address) {
    return ++numbers_[std::string(what) + " " + thread + " " + std::string(address.view())];
  }
  void Refresh();                      // what has become due shows
  void Refresh(ServedSocket& socket);  // of this socket
  ServedSocket* ListenerAt(const preload::SocketAddress& target);
  void Tell(const std::string& difference);
  void Moved();
  // The calling thread has made `calls` calls of those that a recording has of connection `c`. Runs
  // the program's handler of SIGCHLD if the signal had come by then; keeps errno.
  void CountCalls(uint32_t c, size_t calls = 1);
  ServedSocket* NewSocket(int type, int& fd);
  ServedSocket* NewPipe(int access, int& fd);
  // The library's ends are out of the way of the numbers that the program gets and counts on.
  static int MoveUp(int fd);
  // Puts `made_fd` in the place of `fd`, with the marks that this one has.
  static bool PutAt(int made_fd, int fd);
  // A program that inherits `fd`, which leads to `socket`, finds it at whatever number.
  void NameForHeirs(int fd, const ServedSocket& socket);
  [[nodiscard]] uint64_t HeirKeyOf(const PlannedConnection& connection) const;
  // Where the program was born with a recorded inherited connection; -1: it is none.
  int FindInherited(const PlannedConnection& connection) const;
  void InstallFile(uint32_t connection);
  void InstallListener(uint32_t connection, int wanted);
  void AdoptFromParent();
  void AdoptLive(int fd, const ServedSocket& parents);
  // What this process's recording calls connection `theirs` of its parent; kNone: it has none.
  uint32_t FindParents(const ServedSocket& socket, uint32_t theirs) const;
  // A process of the rank accepted connections at this recorded Unix name.
  bool IsAcceptedInRank(const std::string& address);
  // The recorded process at the other end of a connection that this one made has ended before it
  // took it, or as it did.
  bool IsNeverTaken(uint32_t connection) const;
  // No process of the rank has accepted it.
  bool IsNotAccepted(uint32_t connection) const;
  // A read of this connection, which leads to its own process, found it reset.
  bool WasReset(uint32_t connection) const;
  // The calling thread has received `received` bytes of a connection to a process of the rank. If
  // that is a request, it goes on when others have answered what they had. `lock` is let go while
  // it waits.
  void AwaitAnswers(uint32_t connection, uint64_t received, std::unique_lock<std::mutex>& lock);
  // Threads other than `thread` are still to take a connection that another process of the rank
  // makes.
  [[nodiscard]] bool AreToAccept(uint32_t thread) const;
  void Pace();
  void StartPacer();

  Session& session_;
  const MayConnect may_connect_;
  void* const engine_;
  const Fifos fifos_;
  const std::string rank_;
  preload::PipeTable* const pipes_;
  std::mutex mutex_;
  ConnectionScript script_;
  FamilyOrder family_order_;
  std::map<std::string, uint32_t> numbers_;
  std::map<std::string, bool> accepted_in_rank_;
  std::vector<ServedSocket*> by_connection_;
  std::vector<bool> is_taken_;  // by connection: accepted
  std::vector<ServedSocket*> listeners_;
  std::atomic<uint64_t> moves_{0};
  std::atomic<bool> abandoned_{false};
  bool pacing_ = false;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SOCKETS_CONNECTIONS_H_
