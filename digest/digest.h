// Digests of tensors: a 128-bit hash of the bytes and statistics of the elements.
//
// Pure functions; any thread; no allocation. Memory must be readable by the CPU. XXH3-128 (seed 0),
// canonical byte order. Statistics as in format::TensorStats: NaN and infinity counted,
// min/max/sum/sum of squares over the finite elements in double precision. `sum` and `sum_squares`
// are computed in a fixed order, so that the same bytes give the same bits on every machine
// (digest.cc states the order).
#ifndef DEJA_DIGEST_DIGEST_H_
#define DEJA_DIGEST_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/ids.h"
#include "format/wire/messages.h"

namespace deja::digest {

// Bytes of one element of an ncclDataType_t; 1 for kRawBytes; 0 for any other number. Integers:
// int8 0, uint8 1, int32 2, uint32 3, int64 4, uint64 5. Floating point: fp16 6, fp32 7, fp64 8,
// bf16 9, fp8 e4m3 10, fp8 e5m2 11.
uint32_t ElementSize(uint32_t dtype);
// "float32", "bfloat16", …; "bytes" for kRawBytes; "type 42" style names are the caller's business
// (null).
const char* DTypeName(uint32_t dtype);

// XXH3's 128-bit hash, in canonical byte order. Any thread.
Hash128 HashBytes(std::span<const std::byte> bytes);

// HashBytes of bytes that come in pieces. Begin() first, and again for the next ones.
class RunningHash {
 public:
  // Begin starts a hash, Add takes its next bytes, Value gives the hash so far. One thread at a
  // time.
  void Begin();
  void Add(std::span<const std::byte> bytes);
  [[nodiscard]] Hash128 Value() const;

 private:
  alignas(64) std::byte state_[576];
};

// Statistics of whole elements; trailing bytes are ignored. All zero for kRawBytes and unknown
// types.
format::TensorStats ComputeStats(std::span<const std::byte> bytes, uint32_t dtype);

// HashBytes and ComputeStats, reading the bytes once.
struct TensorDigest {
  Hash128 hash;
  format::TensorStats stats;
};
// `bytes`: whole elements of `dtype` (an ncclDataType_t or kRawBytes). Allocates nothing; any
// thread.
TensorDigest DigestTensor(std::span<const std::byte> bytes, uint32_t dtype);

// One element as a double, for reports; NaN and infinities as they are. Integers of 64 bits may
// round.
double ElementAsDouble(const std::byte* element, uint32_t dtype);

// Distance in units in the last place of two floating-point elements of the same type, as a number
// of representable values. 0 for equal elements, UINT64_MAX if either is NaN or they are integers.
uint64_t UlpDistance(const std::byte* a, const std::byte* b, uint32_t dtype);

}  // namespace deja::digest

#endif  // DEJA_DIGEST_DIGEST_H_
