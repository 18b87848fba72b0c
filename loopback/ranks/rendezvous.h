// How the ranks of a new communicator find each other.
//
// Rank 0 makes the shared area and listens on an abstract unix socket whose name is derived from
// the communicator's key; the others connect, say who they are and are handed the area's
// descriptor. The socket is gone with the process, so nothing can be left behind. A rank that comes
// before rank 0 tries again, for as long as NCCL does. Where DEJA_FOLD names a folder (of at most
// 70 bytes) the socket is a file in it instead, which rank 0 removes. One user at a time; Step
// never blocks.
#ifndef DEJA_LOOPBACK_RANKS_RENDEZVOUS_H_
#define DEJA_LOOPBACK_RANKS_RENDEZVOUS_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compat/nccl.h"
#include "loopback/ranks/progress.h"
#include "loopback/ranks/shared_area.h"

namespace deja::loopback {

using Key = std::array<uint8_t, 16>;

// The key of a communicator that is made with `ids`, the same on all ranks.
Key KeyOfIds(const ncclUniqueId* ids, int count);
// The key of a communicator that is made from the one with `nonce`: the `count`-th one, for the
// ranks that say `color`. `kind` tells the ways of making one apart.
Key KeyOfChild(const uint8_t (&nonce)[16], std::string_view kind, uint64_t count, int64_t color);

// Fills `id`. With NCCL_COMM_ID the n-th id of every process is the same; otherwise it is random. A
// process that has used an id of another one's numbering (NoticeUniqueId) belongs to a program that
// hands ids over by itself. It makes random ones from then on: two processes must not make the same
// id for different communicators.
void MakeUniqueId(ncclUniqueId* id);
void NoticeUniqueId(const ncclUniqueId& id);

class Rendezvous {
 public:
  // `area` is filled when this rank joins; the others may not have yet.
  Rendezvous(const Key& key, int rank, int nranks, SharedArea& area);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // kDone: all ranks are there, or result() is an error, which has been reported.
  Progress Step();
  [[nodiscard]] ncclResult_t result() const { return result_; }
  // Whether sockets have to be looked after; no doorbell rings for them.
  [[nodiscard]] bool MustPoll() const { return !joined_ || rank_ == 0; }

 private:
  Progress Fail(ncclResult_t result) {
    result_ = result;
    return Progress::kDone;
  }
  void CloseSocket();
  Progress Listen();
  Progress Serve();
  bool Answer(int fd);
  Progress Connect();
  Progress AwaitArea();
  Progress Join();

  Key key_;
  int rank_;
  int nranks_;
  int socket_ = -1;  // rank 0: listens; others: the connection to rank 0
  bool joined_ = false;
  bool connected_ = false;
  uint64_t deadline_ = 0;
  std::vector<int> visitors_;  // connected to rank 0 and not answered yet
  std::vector<bool> seen_;
  SharedArea& area_;
  ncclResult_t result_ = ncclSuccess;
};

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_RENDEZVOUS_H_
