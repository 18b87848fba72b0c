// The expected results of collectives: inputs that are a function of (seed, rank), and a serial
// reference for every data type and operator. It sums in the order of NCCL's ring.
//
// Written for clarity and independently of the library, one element at a time. Pure functions.
#ifndef DEJA_TESTS_E2E_APPS_NCCL_REFERENCE_H_
#define DEJA_TESTS_E2E_APPS_NCCL_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "compat/nccl.h"

namespace app {

// A stream of numbers that depends on everything it is made from.
class Numbers {
 public:
  Numbers(uint64_t seed, uint64_t rank, uint64_t tag) : state_(seed) {
    for (uint64_t part : {rank, tag}) state_ = Next() ^ (part * 0x9e3779b97f4a7c15u);
  }
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// FNV-1a over 64-bit words; for summaries.
inline uint64_t Hash(const void* data, size_t bytes, uint64_t hash = 0xcbf29ce484222325u) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  for (; bytes > 0; ++at, --bytes) hash = (hash ^ *at) * 0x100000001b3u;
  return hash;
}
inline uint64_t Hash(const std::vector<char>& data, uint64_t hash = 0xcbf29ce484222325u) {
  return Hash(data.data(), data.size(), hash);
}

inline constexpr ncclDataType_t kAllTypes[] = {
    ncclInt8,    ncclUint8,   ncclInt32,   ncclUint32,   ncclInt64,      ncclUint64,
    ncclFloat16, ncclFloat32, ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
inline constexpr ncclRedOp_t kAllOps[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

inline const char* TypeName(ncclDataType_t type) {
  static const char* const names[] = {"int8",    "uint8",    "int32",   "uint32",
                                      "int64",   "uint64",   "float16", "float32",
                                      "float64", "bfloat16", "e4m3",    "e5m2"};
  return names[type];
}
inline const char* OpName(ncclRedOp_t op) {
  static const char* const names[] = {"sum", "prod", "max", "min", "avg"};
  return op < ncclNumOps ? names[op] : "premulsum";
}
inline size_t SizeOf(ncclDataType_t type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[type];
}
inline bool IsInteger(ncclDataType_t type) {
  return type <= ncclUint64;
}
inline bool IsSigned(ncclDataType_t type) {
  return type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
}

// The floating-point formats, one bit pattern at a time and written for clarity: this is the
// reference that the library is compared with.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool infinities;
};
inline Format FormatOf(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return {5, 10, true};
    case ncclBfloat16:
      return {8, 7, true};
    case ncclFloat32:
      return {8, 23, true};
    case ncclFloat8e4m3:
      return {4, 3, false};
    case ncclFloat8e5m2:
      return {5, 2, true};
    default:
      return {11, 52, true};
  }
}
// Nearest number of the format, ties to even. Beyond the largest: infinity.
inline double RoundTo(const Format& format, double value) {
  if (value == 0 || std::isnan(value) || std::isinf(value)) return value;
  int bias = (1 << (format.exponent_bits - 1)) - 1;
  int exponent;
  std::frexp(value, &exponent);  // value = 0.1… * 2^exponent
  int lowest = std::max(exponent - 1, 1 - bias) - format.mantissa_bits;
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -lowest)), lowest);
  int top = (1 << format.exponent_bits) - (format.infinities ? 2 : 1) - bias;
  double largest = std::ldexp(2.0 - std::ldexp(1.0, -format.mantissa_bits), top);
  if (!format.infinities) largest = std::ldexp(2.0 - std::ldexp(2.0, -format.mantissa_bits), top);
  if (std::fabs(rounded) > largest) return std::copysign(HUGE_VAL, value);
  return rounded;
}
inline uint64_t Encode(ncclDataType_t type, double value) {
  if (type == ncclFloat32 && !std::isnan(value)) {
    auto narrow = static_cast<float>(value);
    uint32_t bits32;
    std::memcpy(&bits32, &narrow, sizeof bits32);
    return bits32;
  }
  if (type == ncclFloat64 && !std::isnan(value)) {
    uint64_t bits64;
    std::memcpy(&bits64, &value, sizeof bits64);
    return bits64;
  }
  Format format = FormatOf(type);
  uint64_t sign = std::signbit(value) ? 1 : 0;
  int bits = 1 + format.exponent_bits + format.mantissa_bits;
  uint64_t infinity = ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  bool is_fp8 = bits == 8;
  uint64_t largest = format.infinities ? infinity - 1 : 0x7e;
  uint64_t magnitude = 0;
  double rounded = RoundTo(format, value);
  if (std::isnan(value)) {
    if (type == ncclFloat64) return 0xfff8000000000000u;
    return (uint64_t{1} << (bits - 1)) - 1;  // the canonical NaN: all ones but the sign
  }
  if (std::isinf(rounded)) {
    magnitude = is_fp8 ? largest : infinity;  // fp8 saturates
  } else if (rounded != 0) {
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    int exponent;
    std::frexp(rounded, &exponent);
    exponent = std::max(exponent - 1, 1 - bias);
    auto mantissa =
        static_cast<uint64_t>(std::ldexp(std::fabs(rounded), format.mantissa_bits - exponent));
    magnitude = mantissa + (static_cast<uint64_t>(exponent + bias - 1) << format.mantissa_bits);
  }
  return magnitude | sign << (bits - 1);
}
inline double Decode(ncclDataType_t type, uint64_t bits) {
  if (type == ncclFloat32) {
    auto bits32 = static_cast<uint32_t>(bits);
    float narrow;
    std::memcpy(&narrow, &bits32, sizeof narrow);
    return narrow;
  }
  if (type == ncclFloat64) {
    double value64;
    std::memcpy(&value64, &bits, sizeof value64);
    return value64;
  }
  Format format = FormatOf(type);
  int width = 1 + format.exponent_bits + format.mantissa_bits;
  bool negative = bits >> (width - 1) & 1;
  uint64_t mantissa = bits & ((uint64_t{1} << format.mantissa_bits) - 1);
  int exponent = static_cast<int>(bits >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
  int top = (1 << format.exponent_bits) - 1;
  int bias = (1 << (format.exponent_bits - 1)) - 1;
  double value;
  if (format.infinities && exponent == top) {
    value = mantissa ? NAN : HUGE_VAL;
  } else if (!format.infinities && exponent == top && mantissa == 7) {
    value = NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - format.mantissa_bits);
  } else {
    value = std::ldexp(static_cast<double>(mantissa | uint64_t{1} << format.mantissa_bits),
                       exponent - bias - format.mantissa_bits);
  }
  return negative ? -value : value;
}

inline uint64_t LoadBits(ncclDataType_t type, const char* data, size_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, data + i * SizeOf(type), SizeOf(type));
  return bits;
}
inline void StoreBits(ncclDataType_t type, char* data, size_t i, uint64_t bits) {
  std::memcpy(data + i * SizeOf(type), &bits, SizeOf(type));
}
inline int64_t SignExtend(ncclDataType_t type, uint64_t bits) {
  int unused = 64 - 8 * static_cast<int>(SizeOf(type));
  return static_cast<int64_t>(bits << unused) >> unused;
}

// The result of one floating-point operation, which GPUs compute for fp8 in half precision.
inline uint64_t RoundResult(ncclDataType_t type, double exact) {
  if (SizeOf(type) == 1) exact = RoundTo({5, 10, true}, exact);
  return Encode(type, exact);
}

// a (op) b on two elements; `op` is one of sum, prod, max, min.
inline uint64_t Apply(ncclDataType_t type, ncclRedOp_t op, uint64_t a, uint64_t b) {
  if (IsInteger(type)) {
    bool less = IsSigned(type) ? SignExtend(type, a) < SignExtend(type, b) : a < b;
    switch (op) {
      case ncclSum:
        return a + b;
      case ncclProd:
        return a * b;
      case ncclMax:
        return less ? b : a;
      default:
        return less ? a : b;
    }
  }
  double x = Decode(type, a);
  double y = Decode(type, b);
  switch (op) {
    case ncclSum:
      return RoundResult(type, x + y);
    case ncclProd:
      return RoundResult(type, x * y);
    default:
      break;
  }
  if (std::isnan(x)) return Encode(type, y);
  if (std::isnan(y)) return Encode(type, x);
  bool less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
  return Encode(type, less == (op == ncclMin) ? x : y);
}

// Operators as a reference knows them: PreMulSum is kPreMul with one scalar a rank.
struct Operator {
  ncclRedOp_t op = ncclSum;
  bool premul = false;
  std::vector<uint64_t> scalars;  // by rank, one element each
};
inline Operator BuiltIn(ncclRedOp_t op) {
  return {op, false, {}};
}

// Folds element i of the ranks' inputs, starting behind `last` in rank order and ending at it.
inline uint64_t FoldElement(ncclDataType_t type, const Operator& op,
                            const std::vector<const char*>& inputs, size_t i, int last) {
  int n = static_cast<int>(inputs.size());
  bool average = op.op == ncclAvg && !op.premul;
  ncclRedOp_t combine = average || op.premul ? ncclSum : op.op;
  uint64_t result = 0;
  uint64_t mask = SizeOf(type) == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * SizeOf(type)) - 1;
  for (int k = 1; k <= n; ++k) {
    int rank = (last + k) % n;
    uint64_t x = LoadBits(type, inputs[static_cast<size_t>(rank)], i);
    if (op.premul) {
      x = Apply(type, ncclProd, x, op.scalars[static_cast<size_t>(rank)]);
    } else if (average && !IsInteger(type)) {
      double inverse = type == ncclFloat64 ? 1.0 / n : static_cast<float>(1.0 / n);
      x = Apply(type, ncclProd, x, Encode(type, inverse));
    }
    result = (k == 1 ? x : Apply(type, combine, x, result)) & mask;
  }
  if (average && IsInteger(type))
    result = IsSigned(type) ? static_cast<uint64_t>(SignExtend(type, result) / n)
                            : result / static_cast<uint64_t>(n);
  return result & mask;
}

// An all-reduce in the order of NCCL's ring: 2 MiB chunks, the last loop cut in n parts of whole 16
// bytes; chunk c ends at rank c.
inline std::vector<char> ReferenceAllReduce(ncclDataType_t type, const Operator& op,
                                            const std::vector<std::vector<char>>& inputs,
                                            size_t count) {
  size_t n = inputs.size();
  std::vector<const char*> in;
  for (const auto& input : inputs) in.push_back(input.data());
  std::vector<char> out(count * SizeOf(type));
  size_t chunk = (size_t{2} << 20) / SizeOf(type);
  for (size_t start = 0; start < count; start += n * chunk) {
    size_t rest = count - start;
    size_t part = chunk;
    if (rest < n * chunk) {
      size_t grain = 16 / SizeOf(type);
      part = ((rest + n - 1) / n + grain - 1) / grain * grain;
    }
    for (size_t i = start; i < std::min(start + n * part, count); ++i)
      StoreBits(type, out.data(), i,
                FoldElement(type, op, in, i, static_cast<int>((i - start) / part)));
  }
  return out;
}

// `count` elements that end at rank `last`, from element `first` of the inputs on: a block of a
// reduce-scatter, or a reduce to `last`.
inline std::vector<char> ReferenceReduce(ncclDataType_t type, const Operator& op,
                                         const std::vector<std::vector<char>>& inputs, size_t first,
                                         size_t count, int last) {
  std::vector<const char*> in;
  for (const auto& input : inputs) in.push_back(input.data() + first * SizeOf(type));
  std::vector<char> out(count * SizeOf(type));
  for (size_t i = 0; i < count; ++i)
    StoreBits(type, out.data(), i, FoldElement(type, op, in, i, last));
  return out;
}

// Numbers of a size at which sums and products of a few ranks round but rarely overflow; integers
// take all bits.
inline std::vector<char> Input(uint64_t seed, int rank, uint64_t tag, ncclDataType_t type,
                               size_t count) {
  Numbers numbers(seed, static_cast<uint64_t>(rank), tag);
  std::vector<char> data(count * SizeOf(type));
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits =
        IsInteger(type)
            ? numbers.Next()
            : Encode(type, (numbers.Uniform() - 0.5) * (numbers.Next() % 8 == 0 ? 64.0 : 4.0));
    StoreBits(type, data.data(), i, bits);
  }
  return data;
}
inline std::vector<std::vector<char>> Inputs(uint64_t seed, int ranks, uint64_t tag,
                                             ncclDataType_t type, size_t count) {
  std::vector<std::vector<char>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(Input(seed, rank, tag, type, count));
  return all;
}

}  // namespace app

#endif  // DEJA_TESTS_E2E_APPS_NCCL_REFERENCE_H_
