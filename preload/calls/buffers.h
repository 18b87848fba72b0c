// Which memory a collective or point-to-point call reads and writes, and how much of it.
//
// Follows from the table (roles.h), the arguments and the caller's place in the communicator. Pure
// functions; any thread; nothing is dereferenced.
#ifndef DEJA_PRELOAD_CALLS_BUFFERS_H_
#define DEJA_PRELOAD_CALLS_BUFFERS_H_

#include <cstddef>
#include <cstdint>

#include "api/roles.h"

namespace deja::preload {

// A buffer of one call. It is not there (`data` null, no bytes) in three cases. The call has none
// in this direction; this rank is not the root and its buffer is not used; the count is zero or
// beyond what memory can hold.
struct BufferUse {
  const void* data = nullptr;
  uint64_t elements = 0;
  uint64_t bytes = 0;
  uint32_t dtype = 0;
  int arg = -1;  // index of the parameter
  [[nodiscard]] bool empty() const { return bytes == 0; }
};

// Elements of the buffer in parameter `role`, as seen by rank `rank` of `nranks`; 0 if this rank
// does not use it. kInRootOut counts as used by every rank, since each writes it.
uint64_t BufferElements(const api::ApiInfo& info, const uint64_t* args, api::Role role, int nranks,
                        int rank);
// The same in bytes; 0 also if the element type is unknown or the product does not fit.
uint64_t BufferBytes(const api::ApiInfo& info, const uint64_t* args, api::Role role, int nranks,
                     int rank);

// What the call reads and what it writes. The same memory may be both (in place).
BufferUse InputBuffer(const api::ApiInfo& info, const uint64_t* args, int nranks, int rank);
BufferUse OutputBuffer(const api::ApiInfo& info, const uint64_t* args, int nranks, int rank);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_BUFFERS_H_
