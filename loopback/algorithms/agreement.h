// Agreement: whether the ranks of a communicator can carry a collective out together.
//
// NCCL does not compare what ranks call: with DEJA_LOOPBACK_STRICT=1 this library does, and gives an
// error. Ranks that are told to use other protocols or algorithms (NCCL_PROTO, NCCL_ALGO) wait for
// each other for ever, as they do in NCCL. Belongs to one collective; the thread that runs it.
#ifndef DEJA_LOOPBACK_ALGORITHMS_AGREEMENT_H_
#define DEJA_LOOPBACK_ALGORITHMS_AGREEMENT_H_

#include <cstdint>

#include "loopback/ranks/comm.h"

namespace deja::loopback {

struct CollectiveCall;

class Agreement {
 public:
  enum class State : uint8_t { kReached, kOpen, kNever, kBroken };

  Agreement(ncclComm* comm, const CollectiveCall& call);

  // It is this collective's turn, the `number`-th of the communicator.
  void Announce(uint64_t number);
  // kOpen: others have not come; kNever: they never will; kBroken: they call something else.
  State Look();
  // While it is kOpen or kNever: whether for want of `peer`.
  [[nodiscard]] bool Awaits(int peer) const;
  // A rank that calls something else.
  [[nodiscard]] int unlike() const { return unlike_; }

 private:
  [[nodiscard]] bool HasOtherProtocol(int peer) const;
  [[nodiscard]] uint64_t AnnouncedBy(int peer) const;

  ncclComm& comm_;
  uint32_t call_ = 0;  // a hash
  uint64_t number_ = 0;
  bool is_strict_;
  bool is_reached_ = false;
  int unlike_ = -1;
};

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_ALGORITHMS_AGREEMENT_H_
