// The digest of a tensor from what a GPU has computed of it (cuda/digest_kernel.h): the same hash,
// counts and extremes as DigestTensor of its bytes.
//
// `sum` and `sum_squares` are sums of the same doubles in another order, which does not depend on
// the GPU either. They differ by rounding, by at most n * 2^-52 of the sum of the elements'
// magnitudes (or squares). Where every partial sum is exact, they do not differ. A sum that leaves
// the range of doubles may do so in one order only.
//
// Results lie one after the other: what a launch leaves for each piece of kPieceBlocks blocks (the
// last may have fewer). The tensor's tail belongs to the last piece.
//
// Pure functions; any thread; no allocation.
#ifndef DEJA_DIGEST_DIGEST_SUMS_H_
#define DEJA_DIGEST_DIGEST_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "digest/digest.h"

namespace deja::digest {

// Blocks of 1024 bytes that one launch takes: 64 MiB.
inline constexpr uint64_t kPieceBlocks = 65536;

// What of a tensor's bytes is summed, and what is left to the host.
struct SummedTensor {
  // `bytes`: size of the tensor.
  explicit SummedTensor(uint64_t bytes);

  uint64_t blocks;      // a tensor of more than one block has at least one, and a tail
  uint64_t pieces;      // at least 1
  uint64_t tail_from;   // where the tail begins: one stripe before the end of the last block
  uint64_t tail_bytes;  // of a tensor of one block or less: all of it

  // Blocks of a piece, which is below `pieces`.
  [[nodiscard]] uint64_t BlocksOf(uint64_t piece) const;
  // Bytes of the results of a piece.
  [[nodiscard]] uint64_t ResultsOf(uint64_t piece) const;
  [[nodiscard]] uint64_t Results() const;
};
// The most that a piece has.
uint64_t MostResultsOfPiece();
// Thread blocks of a launch for `blocks` blocks of a tensor.
uint32_t ThreadBlocksFor(uint64_t blocks);

// `results`: SummedTensor(bytes).Results() bytes, aligned to 8.
TensorDigest DigestOfSums(uint64_t bytes, uint32_t dtype, std::span<const std::byte> results);

}  // namespace deja::digest

#endif  // DEJA_DIGEST_DIGEST_SUMS_H_
