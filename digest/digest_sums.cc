#include "digest/digest_sums.h"

#include <algorithm>
#include <cstring>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/runtime/float_mode.h"
#include "digest/digest_kernel.h"

namespace deja::digest {
namespace {

constexpr uint64_t kStripeBytes = XXH_STRIPE_LEN;
static_assert(gpu::kBlockBytes == gpu::kStripes * kStripeBytes);
static_assert(gpu::kStripes ==
              (XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN) / XXH_SECRET_CONSUME_RATE);
static_assert(gpu::kSumBytes == XXH_ACC_NB * sizeof(uint64_t));

uint64_t RecordsOf(uint64_t blocks) {
  return (blocks + gpu::kBlocksOfWarp - 1) / gpu::kBlocksOfWarp;
}

// A hash that has seen whole blocks, of which only the sums are known.
class SummedHash {
 public:
  SummedHash() { XXH3_128bits_reset(&state_); }

  void AddBlocks(const std::byte* sums, uint64_t blocks) {
    for (uint64_t block = 0; block < blocks; ++block) {
      uint64_t added[8];
      std::memcpy(added, sums + block * sizeof added, sizeof added);
      for (int i = 0; i < 8; ++i) state_.acc[i] += added[i];
      XXH3_scrambleAcc(state_.acc, XXH3_kSecret + XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN);
    }
    state_.totalLen += blocks * gpu::kBlockBytes;
  }
  // `tail`: the last stripe of the blocks, and what comes after them.
  Hash128 Finish(std::span<const std::byte> tail) {
    // The last stripe of all may begin before the tail: it is looked for at the buffer's end.
    std::memcpy(state_.buffer + sizeof state_.buffer - kStripeBytes, tail.data(), kStripeBytes);
    XXH3_128bits_update(&state_, tail.data() + kStripeBytes, tail.size() - kStripeBytes);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_));
    Hash128 hash;
    std::memcpy(hash.bytes.data(), canonical.digest, sizeof canonical.digest);
    return hash;
  }

 private:
  XXH3_state_t state_;
};

void AddRecord(format::TensorStats& stats, uint64_t elements, const gpu::Record& record) {
  stats.nan_count += record.nans;
  stats.inf_count += record.infs;
  stats.sum += record.sum;
  stats.sum_squares += record.squares;
  if (elements == uint64_t{record.nans} + record.infs) return;
  stats.min = std::min(stats.min, record.low);
  stats.max = std::max(stats.max, record.high);
}

}  // namespace

SummedTensor::SummedTensor(uint64_t bytes)
    : blocks(bytes == 0 ? 0 : (bytes - 1) / gpu::kBlockBytes),
      pieces(std::max<uint64_t>((blocks + kPieceBlocks - 1) / kPieceBlocks, 1)),
      tail_from(blocks == 0 ? 0 : blocks * gpu::kBlockBytes - kStripeBytes),
      tail_bytes(bytes - tail_from) {}

uint64_t SummedTensor::BlocksOf(uint64_t piece) const {
  return std::min(kPieceBlocks, blocks - piece * kPieceBlocks);
}

uint64_t SummedTensor::ResultsOf(uint64_t piece) const {
  const uint64_t of_piece = BlocksOf(piece);
  return of_piece * gpu::kSumBytes + RecordsOf(of_piece) * sizeof(gpu::Record) +
         (piece + 1 == pieces ? tail_bytes : 0);
}

uint64_t SummedTensor::Results() const {
  constexpr uint64_t kWholePiece =
      kPieceBlocks * gpu::kSumBytes + kPieceBlocks / gpu::kBlocksOfWarp * sizeof(gpu::Record);
  return (pieces - 1) * kWholePiece + ResultsOf(pieces - 1);
}

uint64_t MostResultsOfPiece() {
  return SummedTensor((kPieceBlocks + 1) * gpu::kBlockBytes).Results();
}

uint32_t ThreadBlocksFor(uint64_t blocks) {
  const uint64_t needed = (blocks + gpu::kBlocksOfThreads - 1) / gpu::kBlocksOfThreads;
  return static_cast<uint32_t>(std::max<uint64_t>(needed, 1));
}

TensorDigest DigestOfSums(uint64_t bytes, uint32_t dtype, std::span<const std::byte> results) {
  const SummedTensor tensor(bytes);
  const std::span<const std::byte> tail = results.last(tensor.tail_bytes);
  if (tensor.blocks == 0) return DigestTensor(tail, dtype);
  const bool has_stats = DTypeName(dtype) != nullptr && dtype != format::kRawBytes;
  const uint64_t size = ElementSize(dtype);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  TensorDigest digest;
  digest.stats.min = kInfinity;
  digest.stats.max = -kInfinity;
  const DefaultFloatMode mode;
  SummedHash hash;
  for (uint64_t piece = 0; piece < tensor.pieces; ++piece) {
    const uint64_t blocks = tensor.BlocksOf(piece);
    hash.AddBlocks(results.data(), blocks);
    const std::byte* records = results.data() + blocks * gpu::kSumBytes;
    for (uint64_t i = 0; has_stats && i < RecordsOf(blocks); ++i) {
      const uint64_t of_record =
          std::min<uint64_t>(gpu::kBlocksOfWarp, blocks - i * gpu::kBlocksOfWarp);
      gpu::Record record;
      std::memcpy(&record, records + i * sizeof record, sizeof record);
      AddRecord(digest.stats, of_record * gpu::kBlockBytes / size, record);
    }
    results = results.subspan(tensor.ResultsOf(piece));
  }
  digest.hash = hash.Finish(tail);
  if (!has_stats) {
    digest.stats = {};
    return digest;
  }
  const auto rest = tail.subspan(kStripeBytes);
  const format::TensorStats last = ComputeStats(rest, dtype);
  AddRecord(digest.stats, rest.size() / size,
            {last.sum, last.sum_squares, last.min, last.max, static_cast<uint32_t>(last.nan_count),
             static_cast<uint32_t>(last.inf_count)});
  if (digest.stats.sum != digest.stats.sum) digest.stats.sum = kInfinity;
  if (digest.stats.min > digest.stats.max) digest.stats.min = digest.stats.max = 0;
  digest.stats.min += 0.0;  // -0 becomes +0
  digest.stats.max += 0.0;
  return digest;
}

}  // namespace deja::digest
