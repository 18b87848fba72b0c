// How the elements of an MPI type lie in memory, found out by packing an element whose bytes say
// where they are. Works for every type of every library; needs a running, committed one.
#ifndef DEJA_RECORDER_MPI_MPI_LAYOUT_H_
#define DEJA_RECORDER_MPI_MPI_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "preload/calls/mpi_call.h"

namespace deja::recorder {

struct MpiLayout {
  static constexpr size_t kMaxSegments = 1500;
  static constexpr uint64_t kMaxSpan = 1 << 24;

  bool known = false;  // false: more segments, or a larger element
  uint64_t size = 0;
  int64_t extent = 0;
  size_t count = 0;
  preload::MpiSegment segments[kMaxSegments];

  // A copy of the segments that stays; null if there is no memory.
  [[nodiscard]] const preload::MpiSegment* Keep() const;
};

// False if the library does not say anything about the type.
bool FindLayout(uint64_t type, MpiLayout& layout);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_MPI_MPI_LAYOUT_H_
