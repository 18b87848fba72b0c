// fp16, bf16 and the two fp8 formats: conversions from and to float, as CUDA's headers define them.
// The vector loops of digest/ and the GPU's kernels have their own, which tests compare with these.
//
// Round to nearest even; fp8 saturates to its largest finite value. NaN becomes the NaN that a GPU
// makes. Pure functions of their arguments; any thread.
#ifndef DEJA_COMMON_NUMBERS_NUMBER_FORMATS_H_
#define DEJA_COMMON_NUMBERS_NUMBER_FORMATS_H_

#include <cstdint>

namespace deja {

inline constexpr uint16_t kHalfNan = 0x7fff;
inline constexpr uint16_t kBfloatNan = 0x7fff;
inline constexpr uint32_t kFloatNan = 0x7fffffff;
inline constexpr uint64_t kDoubleNan = 0xfff8000000000000;

float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);
float BfloatToFloat(uint16_t bfloat);
uint16_t FloatToBfloat(float value);

enum class Fp8 { kE4M3, kE5M2 };
float Fp8ToFloat(Fp8 format, uint8_t bits);
uint8_t FloatToFp8(Fp8 format, float value);

}  // namespace deja

#endif  // DEJA_COMMON_NUMBERS_NUMBER_FORMATS_H_
