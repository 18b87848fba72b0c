// NCCL's ring: in which order inputs are summed, and which part of a buffer starts where.
//
// One channel whose ring is rank 0, 1, …, n-1. The elements of an all-reduce are cut into chunks;
// chunk c is folded from rank c+1 round the ring to rank c. A reduce-scatter folds the block of
// rank r from r+1 to r, a reduce from root+1 to root. Pure functions; any thread.
#ifndef DEJA_LOOPBACK_ALGORITHMS_RING_H_
#define DEJA_LOOPBACK_ALGORITHMS_RING_H_

#include <cstddef>

namespace deja::loopback {

// NCCL's chunk of the Simple protocol: a 4 MiB buffer of 8 steps, 4 of them a chunk.
inline constexpr size_t kRingChunkBytes = size_t{2} << 20;

// The rank whose input is the k-th operand (k = 0 … nranks-1) of what ends at rank `last`.
constexpr int FoldRank(int last, int k, int nranks) {
  return (last + 1 + k) % nranks;
}

struct Range {
  size_t begin = 0;
  size_t end = 0;
  [[nodiscard]] size_t size() const { return end - begin; }
};

// The chunks of an all-reduce of `count` elements: loops of n chunks each. All loops are of the
// same size but the last one, which is cut in n parts, rounded up to 16 bytes.
class RingPartition {
 public:
  RingPartition(size_t count, int nranks, size_t element_bytes,
                size_t chunk_bytes = kRingChunkBytes);

  [[nodiscard]] size_t loops() const { return loops_; }
  // Elements of a chunk in `loop`; the last ranks' chunks of the last loop may be shorter or empty.
  [[nodiscard]] size_t ChunkElements(size_t loop) const;
  // The elements of rank `rank`'s chunk in `loop`.
  [[nodiscard]] Range Chunk(size_t loop, int rank) const;

 private:
  size_t count_;
  size_t nranks_;
  size_t align_;  // elements
  size_t chunk_;  // elements
  size_t loops_;
};

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_ALGORITHMS_RING_H_
