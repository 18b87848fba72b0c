#include "loopback/algorithms/ring.h"

#include <algorithm>

namespace deja::loopback {

RingPartition::RingPartition(size_t count, int nranks, size_t element_bytes, size_t chunk_bytes)
    : count_(count),
      nranks_(static_cast<size_t>(nranks)),
      align_(16 / element_bytes),
      chunk_(chunk_bytes / element_bytes),
      loops_((count + chunk_ * nranks_ - 1) / (chunk_ * nranks_)) {}

size_t RingPartition::ChunkElements(size_t loop) const {
  size_t rest = count_ - loop * chunk_ * nranks_;
  if (rest >= chunk_ * nranks_) return chunk_;
  size_t part = (rest + nranks_ - 1) / nranks_;
  return (part + align_ - 1) / align_ * align_;
}

Range RingPartition::Chunk(size_t loop, int rank) const {
  size_t start = loop * chunk_ * nranks_;
  size_t chunk = ChunkElements(loop);
  size_t begin = std::min(start + static_cast<size_t>(rank) * chunk, count_);
  return {begin, std::min(begin + chunk, count_)};
}

}  // namespace deja::loopback
