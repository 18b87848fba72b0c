// Send and receive: bytes through the channel from one rank to another, first in, first out.
#ifndef DEJA_LOOPBACK_ALGORITHMS_P2P_H_
#define DEJA_LOOPBACK_ALGORITHMS_P2P_H_

#include <cstddef>
#include <memory>

#include "loopback/ranks/op.h"

namespace deja::loopback {

// Take their turn on the communicator. `peer` is not this rank, `bytes` not 0.
std::unique_ptr<Op> MakeSend(ncclComm* comm, const void* buffer, size_t bytes, int peer);
std::unique_ptr<Op> MakeReceive(ncclComm* comm, void* buffer, size_t bytes, int peer);

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_ALGORITHMS_P2P_H_
