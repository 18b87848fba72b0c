// The collectives, as operations on a communicator's boards.
//
// Every rank publishes its input piece by piece. A rank that needs a piece of all ranks folds them
// in the ring's order (ring.h). So results are those of NCCL's ring although no data goes round
// one. Large all-reduces publish in two stages: each rank folds its own chunk and publishes the
// result. Makers return an operation that has taken its turn on the communicator.
#ifndef DEJA_LOOPBACK_ALGORITHMS_COLLECTIVES_H_
#define DEJA_LOOPBACK_ALGORITHMS_COLLECTIVES_H_

#include <memory>

#include "loopback/arithmetic/reduce.h"
#include "loopback/ranks/op.h"

namespace deja::loopback {

enum class CollectiveKind { kAllReduce, kReduceScatter, kReduce, kAllGather, kBroadcast };

struct CollectiveCall {
  CollectiveKind kind;
  const char* name;
  const void* send;
  void* receive;
  size_t count;  // elements of the whole, of one rank's block for kReduceScatter and kAllGather
  Reduction reduction;  // its dtype is the buffers'
  int root = 0;
};

// Not for one-rank communicators and empty buffers.
std::unique_ptr<Op> MakeCollective(ncclComm* comm, const CollectiveCall& call);

// The same on a communicator of one rank: at once.
void RunAlone(const CollectiveCall& call);

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_ALGORITHMS_COLLECTIVES_H_
