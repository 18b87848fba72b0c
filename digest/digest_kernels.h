// The loops behind digest.h, in three builds: for any x86-64 (or other) CPU, for AVX2 and for
// AVX-512.
//
// Internal to digest.cc and its tests. All builds give the same bits for the same bytes. Plain
// types only, because files compiled for AVX2 and more include this header. An inline function of
// the standard library could otherwise end up in the program with instructions that the CPU does
// not have.
#ifndef DEJA_DIGEST_DIGEST_KERNELS_H_
#define DEJA_DIGEST_DIGEST_KERNELS_H_

#include <stddef.h>
#include <stdint.h>

namespace deja::digest {

struct RawStats {
  uint64_t nan_count;
  uint64_t inf_count;
  double min;
  double max;
  double sum;
  double sum_squares;
};

inline constexpr size_t kHashState = 576;

struct DigestKernels {
  // XXH3-128 with seed 0, canonical byte order.
  void (*hash)(const void* data, size_t bytes, uint8_t* out16);
  // The same of bytes that come in pieces; `state` is kHashState bytes, aligned to 64.
  void (*hash_begin)(void* state);
  void (*hash_add)(void* state, const void* data, size_t bytes);
  void (*hash_end)(const void* state, uint8_t* out16);
  // Statistics of `count` elements; the caller has put the floating-point unit into its default
  // mode. False, and nothing written, for a type that has none. `hash`: a state of hash_begin, to
  // which the elements are added in the same pass; may be null.
  bool (*stats)(const void* data, size_t count, uint32_t dtype, RawStats* out, void* hash);
};

extern const DigestKernels kBaselineKernels;
#if defined(__x86_64__)
extern const DigestKernels kAvx2Kernels;
extern const DigestKernels kAvx512Kernels;
#endif

}  // namespace deja::digest

#endif  // DEJA_DIGEST_DIGEST_KERNELS_H_
