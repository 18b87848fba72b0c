// The arithmetic of NCCL's reductions on host memory.
//
// A reduction folds the ranks' inputs from left to right in a given order. It rounds to the element
// type after every step, as NCCL's rings do (each hop stores the native type). Averages multiply
// floating-point inputs by 1/n before the sum and divide integer sums at the end. Results are a
// function of the inputs: NaNs are the GPU's canonical one and min/max order -0 below +0, whatever
// the processor this runs on. Pure functions; any thread.
#ifndef DEJA_LOOPBACK_ARITHMETIC_REDUCE_H_
#define DEJA_LOOPBACK_ARITHMETIC_REDUCE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "compat/nccl.h"

namespace deja::loopback {

// Bytes of one element; 0 for a number that is no data type.
size_t ElementSize(ncclDataType_t dtype);

// An operator, made concrete for one data type, one rank and one communicator.
struct Reduction {
  enum class Combine : uint8_t { kSum, kProd, kMax, kMin };

  ncclDataType_t dtype = ncclFloat32;
  Combine combine = Combine::kSum;
  bool scaled = false;                      // this rank's input is multiplied by `scalar` first
  alignas(8) unsigned char scalar[8] = {};  // one element of `dtype`
  int divisor = 1;                          // integer averages: the sum is divided at the end

  // A built-in operator over `nranks` ranks. `op` must be less than ncclNumOps.
  static Reduction BuiltIn(ncclRedOp_t op, ncclDataType_t dtype, int nranks);
  // Multiplies by the element at `scalar`, then sums.
  static Reduction PreMulSum(ncclDataType_t dtype, const void* scalar);
};

// dst = x, or x * scalar.
void Prepare(const Reduction& reduction, void* dst, const void* x, size_t count);

// dst = local (op) accumulated, rounded to the element type. dst may be either of the two.
void Combine(const Reduction& reduction, void* dst, const void* local, const void* accumulated,
             size_t count);

// dst[i] = inputs[0][i] (op) inputs[1][i] (op) …, folded from the left. All inputs are prepared but
// `inputs[own]` (own = -1: all are). dst may be one of the inputs. Divides at the end if the
// operator asks for it.
void Fold(const Reduction& reduction, void* dst, std::span<const void* const> inputs, int own,
          size_t count);

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_ARITHMETIC_REDUCE_H_
