#include "loopback/arithmetic/reduce.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "loopback/arithmetic/reduce_kernels.h"
#include "reference.h"

namespace deja::loopback {
namespace {

using Bytes = std::vector<char>;

// Every kind of number: ordinary ones, extremes, infinities, both zeros, several NaNs.
Bytes AnyBits(uint64_t seed, int rank, ncclDataType_t type, size_t count) {
  app::Numbers numbers(seed, static_cast<uint64_t>(rank), 9);
  Bytes data(count * app::SizeOf(type));
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = numbers.Next();
    switch (numbers.Next() % 8) {
      case 0:
        if (!app::IsInteger(type))
          bits = app::Encode(type, bits % 3 == 0 ? NAN : bits % 3 == 1 ? -0.0 : 0.0);
        break;
      case 1:
        if (!app::IsInteger(type)) bits = app::Encode(type, bits % 2 ? HUGE_VAL : -HUGE_VAL);
        break;
      case 2:
      case 3:
        if (!app::IsInteger(type)) bits = app::Encode(type, numbers.Uniform() * 4 - 2);
        break;
      default:
        break;  // whatever the bits mean
    }
    app::StoreBits(type, data.data(), i, bits);
  }
  return data;
}

std::vector<const char*> Pointers(const std::vector<Bytes>& inputs) {
  std::vector<const char*> pointers;
  for (const Bytes& input : inputs) pointers.push_back(input.data());
  return pointers;
}

Bytes FoldAll(const Reduction& reduction, const std::vector<Bytes>& inputs, int last,
              size_t count) {
  int n = static_cast<int>(inputs.size());
  std::vector<Bytes> prepared = inputs;
  for (Bytes& input : prepared) Prepare(reduction, input.data(), input.data(), count);
  std::vector<const void*> operands;
  for (int k = 1; k <= n; ++k)
    operands.push_back(prepared[static_cast<size_t>((last + k) % n)].data());
  operands.back() = inputs[static_cast<size_t>(last)].data();
  Bytes out(count * ElementSize(reduction.dtype));
  Fold(reduction, out.data(), operands, n - 1, count);
  return out;
}

TEST(ReduceTest, EveryTypeAndOperatorFoldsAsTheReferenceDoes) {
  for (ncclDataType_t type : app::kAllTypes) {
    for (ncclRedOp_t op : app::kAllOps) {
      for (int n : {1, 2, 3, 5}) {
        size_t count = 5003;
        std::vector<Bytes> inputs;
        for (int rank = 0; rank < n; ++rank) inputs.push_back(AnyBits(11, rank, type, count));
        Bytes out = FoldAll(Reduction::BuiltIn(op, type, n), inputs, n / 2, count);
        auto pointers = Pointers(inputs);
        for (size_t i = 0; i < count; ++i) {
          if (n == 1 && (op != ncclAvg || app::IsInteger(type))) {
            ASSERT_EQ(app::LoadBits(type, out.data(), i), app::LoadBits(type, inputs[0].data(), i));
            continue;
          }
          ASSERT_EQ(app::LoadBits(type, out.data(), i),
                    app::FoldElement(type, app::BuiltIn(op), pointers, i, n / 2))
              << app::TypeName(type) << " " << app::OpName(op) << " n=" << n << " i=" << i;
        }
      }
    }
  }
}

TEST(ReduceTest, OneStepRoundsToTheElementType) {
  // 2048 + 1 is not a half; a wider accumulator would keep the ones.
  Bytes half(3 * 2);
  std::vector<Bytes> inputs(3, Bytes(2));
  app::StoreBits(ncclFloat16, inputs[0].data(), 0, app::Encode(ncclFloat16, 2048));
  app::StoreBits(ncclFloat16, inputs[1].data(), 0, app::Encode(ncclFloat16, 1));
  app::StoreBits(ncclFloat16, inputs[2].data(), 0, app::Encode(ncclFloat16, 1));
  const void* from_large[] = {inputs[0].data(), inputs[1].data(), inputs[2].data()};
  const void* from_small[] = {inputs[1].data(), inputs[2].data(), inputs[0].data()};
  Reduction sum = Reduction::BuiltIn(ncclSum, ncclFloat16, 3);
  Fold(sum, half.data(), from_large, -1, 1);
  EXPECT_EQ(app::Decode(ncclFloat16, app::LoadBits(ncclFloat16, half.data(), 0)), 2048);
  Fold(sum, half.data(), from_small, -1, 1);
  EXPECT_EQ(app::Decode(ncclFloat16, app::LoadBits(ncclFloat16, half.data(), 0)), 2050);
}

TEST(ReduceTest, AveragesOfIntegersDivideTheSumTowardsZero) {
  int32_t a = -7;
  int32_t b = 0;
  int32_t out = 0;
  const void* operands[] = {&a, &b};
  Fold(Reduction::BuiltIn(ncclAvg, ncclInt32, 2), &out, operands, -1, 1);
  EXPECT_EQ(out, -3);
  uint8_t c = 250;
  uint8_t d = 10;
  uint8_t byte = 0;
  const void* bytes[] = {&c, &d};
  Fold(Reduction::BuiltIn(ncclAvg, ncclUint8, 2), &byte, bytes, -1, 1);
  EXPECT_EQ(byte, 2);  // the sum wraps first, as on a GPU
}

TEST(ReduceTest, TheResultMayLieOnAnyOperand) {
  constexpr size_t kCount = 4000;
  for (int own = 0; own < 3; ++own) {
    std::vector<Bytes> inputs;
    for (int rank = 0; rank < 3; ++rank)
      inputs.push_back(app::Input(3, rank, 1, ncclFloat32, kCount));
    Reduction average = Reduction::BuiltIn(ncclAvg, ncclFloat32, 3);
    std::vector<Bytes> apart = inputs;
    std::vector<const void*> operands;
    for (int rank = 0; rank < 3; ++rank) {
      auto r = static_cast<size_t>(rank);
      if (rank != own) Prepare(average, apart[r].data(), apart[r].data(), kCount);
      operands.push_back(apart[r].data());
    }
    Bytes expected(kCount * 4);
    Fold(average, expected.data(), operands, own, kCount);
    Fold(average, apart[static_cast<size_t>(own)].data(), operands, own, kCount);
    EXPECT_EQ(apart[static_cast<size_t>(own)], expected) << own;
  }
}

// Results may not depend on the processor.
TEST(ReduceTest, BothSetsOfKernelsGiveTheSameBits) {
#if defined(__x86_64__)
  if (!CpuHasAvx2()) GTEST_SKIP() << "no AVX2";
#endif
  constexpr size_t kCount = 100003;
  for (ncclDataType_t type : app::kAllTypes) {
    if (app::SizeOf(type) == 1 && !app::IsInteger(type)) continue;  // by table
    Bytes a = AnyBits(5, 0, type, kCount);
    Bytes b = AnyBits(5, 1, type, kCount);
    for (int combine = 0; combine < 4; ++combine) {
      Bytes plain(a.size());
      Bytes fast(a.size());
      kPlainKernels.combine[type][combine](plain.data(), a.data(), b.data(), kCount);
      kAvx2Kernels.combine[type][combine](fast.data(), a.data(), b.data(), kCount);
      EXPECT_EQ(plain, fast) << app::TypeName(type) << " " << combine;
    }
    Bytes plain(a.size());
    Bytes fast(a.size());
    kPlainKernels.scale[type](plain.data(), a.data(), b.data() + 64, kCount);
    kAvx2Kernels.scale[type](fast.data(), a.data(), b.data() + 64, kCount);
    EXPECT_EQ(plain, fast) << app::TypeName(type);
  }
}

TEST(ReduceTest, HalvesOfAllPairsOfExponentsAddExactly) {
  // Sums and products of halves in float, rounded once, are those of exact arithmetic rounded once.
  app::Numbers numbers(1, 2, 3);
  std::vector<uint16_t> a;
  std::vector<uint16_t> b;
  for (int i = 0; i < 200000; ++i) {
    a.push_back(static_cast<uint16_t>(numbers.Next()));
    b.push_back(static_cast<uint16_t>(numbers.Next()));
  }
  for (ncclRedOp_t op : {ncclSum, ncclProd}) {
    std::vector<uint16_t> out(a.size());
    Combine(Reduction::BuiltIn(op, ncclFloat16, 2), out.data(), a.data(), b.data(), a.size());
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(out[i], app::Apply(ncclFloat16, op, a[i], b[i])) << i;
  }
}

}  // namespace
}  // namespace deja::loopback
