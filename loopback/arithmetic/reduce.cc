#include "loopback/arithmetic/reduce.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "common/numbers/number_formats.h"
#include "loopback/arithmetic/reduce_kernels.h"

namespace deja::loopback {
namespace {

constexpr size_t kElementSize[ncclNumTypes] = {
#define DEJA_DTYPE(number, name, size, mantissa_bits) size,
#include "common/data_types.def"
#undef DEJA_DTYPE
};

bool IsInteger(ncclDataType_t dtype) {
  return dtype <= ncclUint64;
}

bool IsFp8(ncclDataType_t dtype) {
  return dtype == ncclFloat8e4m3 || dtype == ncclFloat8e5m2;
}

const KernelTable& Kernels() {
#if defined(__x86_64__)
  static const bool avx2 = CpuHasAvx2();
  if (avx2) return kAvx2Kernels;
#endif
  return kPlainKernels;
}

// GPUs compute fp8 in half precision: both operands fit in a half, the result is rounded to a half
// and then to fp8. All results of one operator fit in a table.
struct Fp8Table {
  uint8_t result[256][256];  // [local][accumulated]
};

float HalfExtreme(float a, float b, bool least) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) == least ? a : b;
  return (a < b) == least ? a : b;
}

const Fp8Table* MakeFp8Table(Fp8 format, Reduction::Combine combine) {
  auto* table = static_cast<Fp8Table*>(std::malloc(sizeof(Fp8Table)));
  if (table == nullptr) return nullptr;
  for (int i = 0; i < 256; ++i) {
    for (int j = 0; j < 256; ++j) {
      float a = Fp8ToFloat(format, static_cast<uint8_t>(i));
      float b = Fp8ToFloat(format, static_cast<uint8_t>(j));
      float value = 0;
      switch (combine) {
        case Reduction::Combine::kSum:
          value = a + b;
          break;
        case Reduction::Combine::kProd:
          value = a * b;
          break;
        case Reduction::Combine::kMax:
          value = HalfExtreme(a, b, false);
          break;
        case Reduction::Combine::kMin:
          value = HalfExtreme(a, b, true);
          break;
      }
      table->result[i][j] = FloatToFp8(format, HalfToFloat(FloatToHalf(value)));
    }
  }
  return table;
}

// Made on first use, kept for good.
const Fp8Table* GetFp8Table(ncclDataType_t dtype, Reduction::Combine combine) {
  static const Fp8Table* tables[2][4] = {};
  Fp8 format = dtype == ncclFloat8e4m3 ? Fp8::kE4M3 : Fp8::kE5M2;
  const Fp8Table** slot = &tables[dtype == ncclFloat8e4m3 ? 0 : 1][static_cast<int>(combine)];
  const Fp8Table* table = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (table != nullptr) return table;
  const Fp8Table* made = MakeFp8Table(format, combine);
  if (made == nullptr) std::abort();  // 64 KiB could not be had
  if (__atomic_compare_exchange_n(slot, &table, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return made;
  std::free(const_cast<Fp8Table*>(made));
  return table;
}

// Stays in the first-level cache together with its inputs.
constexpr size_t kBlockBytes = 8192;

}  // namespace

size_t ElementSize(ncclDataType_t dtype) {
  return dtype >= 0 && dtype < ncclNumTypes ? kElementSize[dtype] : 0;
}

Reduction Reduction::BuiltIn(ncclRedOp_t op, ncclDataType_t dtype, int nranks) {
  Reduction reduction;
  reduction.dtype = dtype;
  switch (static_cast<int>(op)) {
    case ncclProd:
      reduction.combine = Combine::kProd;
      return reduction;
    case ncclMax:
      reduction.combine = Combine::kMax;
      return reduction;
    case ncclMin:
      reduction.combine = Combine::kMin;
      return reduction;
    case ncclAvg:
      break;
    default:
      return reduction;
  }
  if (IsInteger(dtype)) {
    reduction.divisor = nranks;
    return reduction;
  }
  reduction.scaled = true;
  double exact = 1.0 / nranks;
  auto inverse = static_cast<float>(exact);
  switch (dtype) {
    case ncclFloat64:
      std::memcpy(reduction.scalar, &exact, sizeof exact);
      break;
    case ncclFloat32:
      std::memcpy(reduction.scalar, &inverse, sizeof inverse);
      break;
    case ncclFloat16: {
      uint16_t half = FloatToHalf(inverse);
      std::memcpy(reduction.scalar, &half, sizeof half);
      break;
    }
    case ncclBfloat16: {
      uint16_t bfloat = FloatToBfloat(inverse);
      std::memcpy(reduction.scalar, &bfloat, sizeof bfloat);
      break;
    }
    default:
      reduction.scalar[0] = FloatToFp8(dtype == ncclFloat8e4m3 ? Fp8::kE4M3 : Fp8::kE5M2, inverse);
  }
  return reduction;
}

Reduction Reduction::PreMulSum(ncclDataType_t dtype, const void* scalar) {
  Reduction reduction;
  reduction.dtype = dtype;
  reduction.scaled = true;
  std::memcpy(reduction.scalar, scalar, ElementSize(dtype));
  return reduction;
}

void Prepare(const Reduction& reduction, void* dst, const void* x, size_t count) {
  if (!reduction.scaled) {
    if (dst != x) std::memmove(dst, x, count * ElementSize(reduction.dtype));
    return;
  }
  if (!IsFp8(reduction.dtype)) {
    Kernels().scale[reduction.dtype](dst, x, reduction.scalar, count);
    return;
  }
  const Fp8Table* table = GetFp8Table(reduction.dtype, Reduction::Combine::kProd);
  const auto* in = static_cast<const uint8_t*>(x);
  auto* out = static_cast<uint8_t*>(dst);
  for (size_t i = 0; i < count; ++i) out[i] = table->result[in[i]][reduction.scalar[0]];
}

void Combine(const Reduction& reduction, void* dst, const void* local, const void* accumulated,
             size_t count) {
  if (!IsFp8(reduction.dtype)) {
    Kernels().combine[reduction.dtype][static_cast<int>(reduction.combine)](dst, local, accumulated,
                                                                            count);
    return;
  }
  const Fp8Table* table = GetFp8Table(reduction.dtype, reduction.combine);
  const auto* a = static_cast<const uint8_t*>(local);
  const auto* b = static_cast<const uint8_t*>(accumulated);
  auto* out = static_cast<uint8_t*>(dst);
  for (size_t i = 0; i < count; ++i) out[i] = table->result[a[i]][b[i]];
}

void Fold(const Reduction& reduction, void* dst, std::span<const void* const> inputs, int own,
          size_t count) {
  size_t element = ElementSize(reduction.dtype);
  if (element == 0) return;
  size_t block = kBlockBytes / element;
  alignas(64) char accumulated[kBlockBytes];
  alignas(64) char prepared[kBlockBytes];
  for (size_t start = 0; start < count; start += block) {
    size_t n = count - start < block ? count - start : block;
    auto input = [&](size_t k) -> const void* {
      const void* x = static_cast<const char*>(inputs[k]) + start * element;
      if (!reduction.scaled || static_cast<int>(k) != own) return x;
      Prepare(reduction, prepared, x, n);
      return prepared;
    };
    char* out = static_cast<char*>(dst) + start * element;
    if (inputs.size() == 1) {
      const void* x = input(0);
      if (x != out) std::memmove(out, x, n * element);
    }
    const void* so_far = nullptr;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const void* x = input(k);
      if (k == 0) {
        so_far = x;
        continue;
      }
      void* into = k + 1 == inputs.size() ? static_cast<void*>(out) : accumulated;
      Combine(reduction, into, x, so_far, n);
      so_far = into;
    }
    if (reduction.divisor != 1) Kernels().divide[reduction.dtype](out, reduction.divisor, n);
  }
}

}  // namespace deja::loopback
