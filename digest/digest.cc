#include "digest/digest.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/numbers/number_formats.h"
#include "common/runtime/float_mode.h"
#include "digest/digest_kernels.h"

namespace deja::digest {
namespace {

enum DType : uint32_t {
#define DEJA_DTYPE(number, name, size, mantissa_bits) k##name = number,
#include "common/data_types.def"
#undef DEJA_DTYPE
};

struct TypeInfo {
  const char* name;
  uint32_t size;
  uint32_t mantissa_bits;  // of floating-point types
};

constexpr TypeInfo kTypes[] = {
#define DEJA_DTYPE(number, name, size, mantissa_bits) {#name, size, mantissa_bits},
#include "common/data_types.def"
#undef DEJA_DTYPE
};
constexpr uint32_t kTypeCount = sizeof kTypes / sizeof kTypes[0];

#if defined(__x86_64__)
// The first CPUs with AVX-512 run everything more slowly for a while after its multiplications, and
// the program would pay for it. Those with VBMI2 do not.
const DigestKernels& BestKernels() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512f"))
    return kAvx512Kernels;
  return __builtin_cpu_supports("avx2") ? kAvx2Kernels : kBaselineKernels;
}
#endif

// Chosen by a look at the CPU and not by an IFUNC. An IFUNC is resolved before relocation is
// complete, and anything may call a preloaded library.
const DigestKernels& Kernels() {
#if defined(__x86_64__)
  static std::atomic<const DigestKernels*> chosen{nullptr};
  const DigestKernels* kernels = chosen.load(std::memory_order_relaxed);
  if (kernels == nullptr) {
    kernels = &BestKernels();
    chosen.store(kernels, std::memory_order_relaxed);
  }
  return *kernels;
#else
  return kBaselineKernels;
#endif
}

template <typename T>
T LoadAt(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

uint64_t Bits(const std::byte* p, uint32_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, p, size);
  return bits;
}

bool IsFloat(uint32_t dtype) {
  return dtype < kTypeCount && kTypes[dtype].mantissa_bits != 0;
}

// Floats in the order of their values as integers; both zeros are 0.
int64_t OrderKey(uint64_t bits, uint32_t size) {
  uint64_t sign = uint64_t{1} << (size * 8 - 1);
  int64_t magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

}  // namespace

uint32_t ElementSize(uint32_t dtype) {
  if (dtype == format::kRawBytes) return 1;
  return dtype < kTypeCount ? kTypes[dtype].size : 0;
}

const char* DTypeName(uint32_t dtype) {
  if (dtype == format::kRawBytes) return "bytes";
  return dtype < kTypeCount ? kTypes[dtype].name : nullptr;
}

Hash128 HashBytes(std::span<const std::byte> bytes) {
  Hash128 hash;
  Kernels().hash(bytes.data(), bytes.size(), hash.bytes.data());
  return hash;
}

static_assert(sizeof(RunningHash) == kHashState);

void RunningHash::Begin() {
  Kernels().hash_begin(state_);
}

void RunningHash::Add(std::span<const std::byte> bytes) {
  Kernels().hash_add(state_, bytes.data(), bytes.size());
}

Hash128 RunningHash::Value() const {
  Hash128 hash;
  Kernels().hash_end(state_, hash.bytes.data());
  return hash;
}

namespace {

// False if there are none. `hash`: as in DigestKernels.
bool StatsOf(std::span<const std::byte> bytes, uint32_t dtype, format::TensorStats& stats,
             void* hash) {
  if (dtype >= kTypeCount) return false;
  const size_t count = bytes.size() / kTypes[dtype].size;
  if (count == 0) return false;
  const DefaultFloatMode mode;
  RawStats raw;
  if (!Kernels().stats(bytes.data(), count, dtype, &raw, hash)) return false;
  stats.nan_count = raw.nan_count;
  stats.inf_count = raw.inf_count;
  stats.min = raw.min;
  stats.max = raw.max;
  stats.sum = raw.sum;
  stats.sum_squares = raw.sum_squares;
  return true;
}

}  // namespace

format::TensorStats ComputeStats(std::span<const std::byte> bytes, uint32_t dtype) {
  format::TensorStats stats;
  (void)StatsOf(bytes, dtype, stats, nullptr);
  return stats;
}

TensorDigest DigestTensor(std::span<const std::byte> bytes, uint32_t dtype) {
  TensorDigest digest;
  alignas(64) std::byte state[kHashState];
  // The hash of few bytes is another function, which needs no state.
  constexpr size_t kOnePass = 4096;
  const bool one_pass = bytes.size() >= kOnePass;
  if (one_pass) Kernels().hash_begin(state);
  const bool has_stats = StatsOf(bytes, dtype, digest.stats, one_pass ? state : nullptr);
  if (!one_pass || !has_stats) {
    digest.hash = HashBytes(bytes);
    return digest;
  }
  const size_t rest = bytes.size() % kTypes[dtype].size;
  if (rest != 0) Kernels().hash_add(state, bytes.data() + bytes.size() - rest, rest);
  Kernels().hash_end(state, digest.hash.bytes.data());
  return digest;
}

double ElementAsDouble(const std::byte* element, uint32_t dtype) {
  const DefaultFloatMode mode;  // the program may flush denormals
  switch (dtype) {
    case kint8:
      return static_cast<double>(LoadAt<int8_t>(element));
    case kuint8:
    case format::kRawBytes:
      return static_cast<double>(LoadAt<uint8_t>(element));
    case kint32:
      return static_cast<double>(LoadAt<int32_t>(element));
    case kuint32:
      return static_cast<double>(LoadAt<uint32_t>(element));
    case kint64:
      return static_cast<double>(LoadAt<int64_t>(element));
    case kuint64:
      return static_cast<double>(LoadAt<uint64_t>(element));
    case kfloat16:
      return HalfToFloat(LoadAt<uint16_t>(element));
    case kfloat32:
      return static_cast<double>(LoadAt<float>(element));
    case kfloat64:
      return LoadAt<double>(element);
    case kbfloat16:
      return BfloatToFloat(LoadAt<uint16_t>(element));
    case kfloat8e4m3:
      return Fp8ToFloat(Fp8::kE4M3, LoadAt<uint8_t>(element));
    case kfloat8e5m2:
      return Fp8ToFloat(Fp8::kE5M2, LoadAt<uint8_t>(element));
    default:
      return 0;
  }
}

uint64_t UlpDistance(const std::byte* a, const std::byte* b, uint32_t dtype) {
  if (!IsFloat(dtype) || std::isnan(ElementAsDouble(a, dtype)) ||
      std::isnan(ElementAsDouble(b, dtype)))
    return std::numeric_limits<uint64_t>::max();
  uint32_t size = kTypes[dtype].size;
  int64_t x = OrderKey(Bits(a, size), size);
  int64_t y = OrderKey(Bits(b, size), size);
  return x < y ? static_cast<uint64_t>(y) - static_cast<uint64_t>(x)
               : static_cast<uint64_t>(x) - static_cast<uint64_t>(y);
}

}  // namespace deja::digest
