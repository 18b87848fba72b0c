#include "digest/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "digest/digest_kernels.h"

namespace deja::preload {
namespace {

constexpr uint32_t kTypeCount = 12;

struct Kernel {
  const char* name;
  const digest::DigestKernels* kernels;
};

std::vector<Kernel> Kernels() {
  std::vector<Kernel> all = {{"baseline", &digest::kBaselineKernels}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) all.push_back({"avx2", &digest::kAvx2Kernels});
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512f"))
    all.push_back({"avx512", &digest::kAvx512Kernels});
#endif
  return all;
}

// The contract, written down once more without any tricks.
digest::RawStats Naive(const std::vector<std::byte>& bytes, uint32_t dtype) {
  digest::RawStats s{};
  double sum[16] = {};
  double squares[16] = {};
  size_t size = digest::ElementSize(dtype);
  bool first = true;
  for (size_t i = 0; i < bytes.size() / size; ++i) {
    double v = digest::ElementAsDouble(&bytes[i * size], dtype);
    if (std::isnan(v)) {
      ++s.nan_count;
      continue;
    }
    if (std::isinf(v)) {
      ++s.inf_count;
      continue;
    }
    volatile double square = v * v;
    sum[i % 16] += v;
    squares[i % 16] += square;
    if (first || v < s.min) s.min = v;
    if (first || v > s.max) s.max = v;
    first = false;
  }
  for (size_t width = 8; width > 0; width /= 2) {
    for (size_t j = 0; j < width; ++j) {
      sum[j] += sum[j + width];
      squares[j] += squares[j + width];
    }
  }
  s.sum = std::isnan(sum[0]) ? std::numeric_limits<double>::infinity() : sum[0];
  s.sum_squares = squares[0];
  return s;
}

uint64_t BitsOf(double v) {
  return std::bit_cast<uint64_t>(v);
}

void ExpectSame(const std::vector<std::byte>& bytes, uint32_t dtype, const std::string& what) {
  digest::RawStats want = Naive(bytes, dtype);
  for (const Kernel& k : Kernels()) {
    SCOPED_TRACE(what + ", " + digest::DTypeName(dtype) + ", " + k.name);
    digest::RawStats got{};
    const size_t count = bytes.size() / digest::ElementSize(dtype);
    alignas(64) std::byte state[digest::kHashState];
    k.kernels->hash_begin(state);
    ASSERT_TRUE(k.kernels->stats(bytes.data(), count, dtype, &got, state));
    uint8_t hash[16];
    k.kernels->hash_end(state, hash);
    uint8_t hash_alone[16];
    digest::kBaselineKernels.hash(bytes.data(), count * digest::ElementSize(dtype), hash_alone);
    EXPECT_EQ(std::memcmp(hash, hash_alone, 16), 0);
    digest::RawStats alone{};
    ASSERT_TRUE(k.kernels->stats(bytes.data(), count, dtype, &alone, nullptr));
    EXPECT_EQ(std::memcmp(&alone, &got, sizeof got), 0);
    EXPECT_EQ(got.nan_count, want.nan_count);
    EXPECT_EQ(got.inf_count, want.inf_count);
    EXPECT_EQ(got.min, want.min);
    EXPECT_EQ(got.max, want.max);
    EXPECT_EQ(BitsOf(got.sum), BitsOf(want.sum));
    EXPECT_EQ(BitsOf(got.sum_squares), BitsOf(want.sum_squares));
  }
}

std::vector<std::byte> RandomBytes(size_t n, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<std::byte> bytes(n);
  for (auto& b : bytes) b = static_cast<std::byte>(rng());
  return bytes;
}

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(Digest, HashIsCanonicalXxh3) {
  // The published value of XXH3-128 of no bytes with seed 0.
  const uint8_t want[16] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                            0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
  EXPECT_EQ(std::memcmp(digest::HashBytes({}).bytes.data(), want, 16), 0);
}

TEST(Digest, OnePassGivesWhatTwoDo) {
  const std::vector<std::byte> bytes = RandomBytes(70'003, 5);
  for (const size_t size : {0, 1, 4, 4095, 4096, 4099, 65'536, 70'003}) {
    for (const uint32_t dtype : {0u, 4u, 6u, 7u, 8u, 9u, format::kRawBytes, 99u}) {
      SCOPED_TRACE(std::to_string(size) + " bytes, type " + std::to_string(dtype));
      const auto part = std::span(bytes).first(size);
      const digest::TensorDigest digest = digest::DigestTensor(part, dtype);
      const format::TensorStats stats = digest::ComputeStats(part, dtype);
      EXPECT_EQ(digest.hash, digest::HashBytes(part));
      EXPECT_EQ(std::memcmp(&digest.stats, &stats, sizeof stats), 0);
    }
  }
}

TEST(Digest, HashIsTheSameInEveryBuild) {
  std::vector<std::byte> bytes = RandomBytes(5000, 1);
  for (size_t n = 0; n <= bytes.size(); n += n < 600 ? 1 : 97) {
    uint8_t a[16];
    digest::kBaselineKernels.hash(bytes.data(), n, a);
    for (const Kernel& k : Kernels()) {
      uint8_t b[16];
      k.kernels->hash(bytes.data(), n, b);
      ASSERT_EQ(std::memcmp(a, b, 16), 0) << k.name << " " << n;
    }
  }
}

// In pieces that end before, at and behind every border of the hash: 64, 256 and 1024 bytes.
TEST(Digest, HashOfPiecesIsTheHashOfTheWholeInEveryBuild) {
  const std::vector<std::byte> bytes = RandomBytes(20000, 2);
  std::mt19937_64 rng(3);
  for (const Kernel& k : Kernels()) {
    for (size_t round = 0; round < 400; ++round) {
      const size_t largest = size_t{1} << (3 + round % 12);
      alignas(64) std::byte state[digest::kHashState];
      k.kernels->hash_begin(state);
      const size_t whole = rng() % (bytes.size() + 1);
      for (size_t at = 0; at < whole;) {
        const size_t piece = std::min(whole - at, static_cast<size_t>(rng() % (largest + 1)));
        k.kernels->hash_add(state, bytes.data() + at, piece);
        at += piece;
      }
      uint8_t want[16];
      uint8_t got[16];
      digest::kBaselineKernels.hash(bytes.data(), whole, want);
      k.kernels->hash_end(state, got);
      ASSERT_EQ(std::memcmp(want, got, 16), 0) << k.name << " " << whole << " by " << largest;
    }
  }
}

TEST(Digest, HashSeesEveryByte) {
  std::vector<std::byte> bytes(1000);
  Hash128 before = digest::HashBytes(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte{1};
    EXPECT_NE(digest::HashBytes(bytes), before) << i;
    bytes[i] = std::byte{0};
  }
}

TEST(Digest, StatsOfRandomBitsOfEveryLength) {
  for (uint32_t dtype = 0; dtype < kTypeCount; ++dtype) {
    size_t size = digest::ElementSize(dtype);
    for (size_t count = 0; count < 70; ++count)
      ExpectSame(RandomBytes(count * size, count + 100), dtype, std::to_string(count));
    for (size_t count : {4095u, 4096u, 4097u, 4111u, 8192u, 20000u})
      ExpectSame(RandomBytes(count * size, count), dtype, std::to_string(count));
  }
}

TEST(Digest, StatsOfOrdinaryNumbers) {
  std::mt19937_64 rng(7);
  std::normal_distribution<double> normal(0, 1e-3);
  std::vector<float> floats(50001);
  std::vector<double> doubles(50001);
  for (auto& v : floats) v = static_cast<float>(normal(rng));
  for (auto& v : doubles) v = normal(rng);
  ExpectSame(BytesOf(floats), 7, "normal");
  ExpectSame(BytesOf(doubles), 8, "normal");
}

TEST(Digest, EveryPatternOfTheEightBitTypesAlone) {
  for (uint32_t dtype : {0u, 1u, 10u, 11u})
    for (int bits = 0; bits < 256; ++bits)
      for (size_t count : {1u, 16u, 17u})
        ExpectSame(std::vector<std::byte>(count, static_cast<std::byte>(bits)), dtype,
                   "pattern " + std::to_string(bits));
}

TEST(Digest, EveryPatternOfTheSixteenBitTypesAlone) {
  for (uint32_t dtype : {6u, 9u}) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      std::vector<uint16_t> block(16, static_cast<uint16_t>(bits));
      ExpectSame(BytesOf(block), dtype, "pattern " + std::to_string(bits));
      if (HasFailure()) return;
    }
  }
}

TEST(Digest, EveryPatternOfTheSmallTypesTogether) {
  std::vector<std::byte> eight(256);
  for (size_t i = 0; i < 256; ++i) eight[i] = static_cast<std::byte>(i);
  for (uint32_t dtype : {0u, 1u, 10u, 11u}) ExpectSame(eight, dtype, "all");
  std::vector<uint16_t> sixteen(65536);
  for (size_t i = 0; i < sixteen.size(); ++i) sixteen[i] = static_cast<uint16_t>(i);
  for (uint32_t dtype : {6u, 9u}) ExpectSame(BytesOf(sixteen), dtype, "all");
}

TEST(Digest, SpecialValuesAtEveryPlace) {
  const float specials[] = {
      std::numeric_limits<float>::quiet_NaN(),  std::bit_cast<float>(0xffc12345u),
      std::bit_cast<float>(0x7f800001u),  // signalling
      std::numeric_limits<float>::infinity(),   -std::numeric_limits<float>::infinity(),
      std::numeric_limits<float>::denorm_min(), -0.0f,
      std::numeric_limits<float>::max(),        std::numeric_limits<float>::lowest()};
  for (float special : specials) {
    for (size_t at = 0; at < 40; ++at) {
      std::vector<float> values(40, 1.5f);
      std::memcpy(&values[at], &special, 4);  // a copy through a register could quieten a NaN
      ExpectSame(BytesOf(values), 7, "special at " + std::to_string(at));
    }
  }
}

TEST(Digest, NothingFinite) {
  std::vector<double> values(33, std::numeric_limits<double>::quiet_NaN());
  values[5] = -std::numeric_limits<double>::infinity();
  format::TensorStats s = digest::ComputeStats(std::as_bytes(std::span(values)), 8);
  EXPECT_EQ(s.nan_count, 32u);
  EXPECT_EQ(s.inf_count, 1u);
  EXPECT_EQ(s.min, 0);
  EXPECT_EQ(s.max, 0);
  EXPECT_EQ(s.sum, 0);
}

TEST(Digest, SumsThatDoNotFitAreInfinite) {
  std::vector<double> values(32, std::numeric_limits<double>::max());
  for (size_t i = 0; i < 16; ++i) values[2 * i] = -values[2 * i];
  format::TensorStats s = digest::ComputeStats(std::as_bytes(std::span(values)), 8);
  EXPECT_EQ(s.inf_count, 0u);
  EXPECT_EQ(s.sum, std::numeric_limits<double>::infinity());
  EXPECT_EQ(s.sum_squares, std::numeric_limits<double>::infinity());
  EXPECT_EQ(s.min, std::numeric_limits<double>::lowest());
}

TEST(Digest, ExtremesOfIntegersAreExact) {
  std::vector<uint64_t> big = {5, uint64_t{1} << 63, 3};
  format::TensorStats s = digest::ComputeStats(std::as_bytes(std::span(big)), 5);
  EXPECT_EQ(s.min, 3);
  EXPECT_EQ(s.max, 0x1p63);
  std::vector<uint32_t> small = {0xffffffffu, 7};
  s = digest::ComputeStats(std::as_bytes(std::span(small)), 3);
  EXPECT_EQ(s.min, 7);
  EXPECT_EQ(s.max, 4294967295.0);
  std::vector<int64_t> negative = {-1, std::numeric_limits<int64_t>::min()};
  s = digest::ComputeStats(std::as_bytes(std::span(negative)), 4);
  EXPECT_EQ(s.min, -0x1p63);
  EXPECT_EQ(s.max, -1);
}

TEST(Digest, RawBytesAndUnknownTypesHaveNoStats) {
  std::vector<std::byte> bytes = RandomBytes(64, 3);
  EXPECT_EQ(digest::ComputeStats(bytes, format::kRawBytes), format::TensorStats{});
  EXPECT_EQ(digest::ComputeStats(bytes, 12), format::TensorStats{});
  EXPECT_EQ(digest::ElementSize(12), 0u);
  EXPECT_EQ(digest::ElementSize(format::kRawBytes), 1u);
  EXPECT_EQ(digest::DTypeName(12), nullptr);
  EXPECT_STREQ(digest::DTypeName(9), "bfloat16");
}

TEST(Digest, TrailingBytesAreIgnored) {
  std::vector<std::byte> bytes = RandomBytes(403, 3);
  EXPECT_EQ(digest::ComputeStats(bytes, 2), digest::ComputeStats(std::span(bytes).first(400), 2));
}

#if defined(__x86_64__)
TEST(Digest, TheProgramsFloatingPointModeDoesNotMatterAndStaysAsItWas) {
  std::vector<float> values(100, std::numeric_limits<float>::denorm_min());
  values[3] = 1.0f / 3;
  values[4] = std::bit_cast<float>(0x7f800001u);
  auto bytes = std::as_bytes(std::span(values));
  format::TensorStats want = digest::ComputeStats(bytes, 7);
  EXPECT_EQ(want.min, static_cast<double>(std::numeric_limits<float>::denorm_min()));
  // Flush to zero, denormals are zero, round up, every exception unmasked.
  constexpr unsigned kOdd = 0x8000 | 0x0040 | 0x4000;
  unsigned saved = _mm_getcsr();
  _mm_setcsr(kOdd);
  format::TensorStats got = digest::ComputeStats(bytes, 7);
  unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_EQ(got, want);
  EXPECT_EQ(after, kOdd);
}
#endif

TEST(Digest, ElementsAsDoubles) {
  auto value = [](auto bits, uint32_t dtype) {
    return digest::ElementAsDouble(reinterpret_cast<const std::byte*>(&bits), dtype);
  };
  EXPECT_EQ(value(uint16_t{0x3c00}, 6), 1.0);
  EXPECT_EQ(value(uint16_t{0x0001}, 6), 0x1p-24);
  EXPECT_EQ(value(uint16_t{0xfbff}, 6), -65504.0);
  EXPECT_EQ(value(uint16_t{0x7c00}, 6), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value(uint16_t{0x7e00}, 6)));
  EXPECT_EQ(value(uint16_t{0x3f80}, 9), 1.0);
  EXPECT_EQ(value(uint16_t{0x0001}, 9), 0x1p-133);
  EXPECT_EQ(value(uint8_t{0x7e}, 10), 448.0);
  EXPECT_EQ(value(uint8_t{0x01}, 10), 0x1p-9);
  EXPECT_TRUE(std::isnan(value(uint8_t{0xff}, 10)));
  EXPECT_EQ(value(uint8_t{0x7b}, 11), 57344.0);
  EXPECT_EQ(value(uint8_t{0xfc}, 11), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(value(int8_t{-5}, 0), -5.0);
}

TEST(Digest, UlpDistances) {
  auto distance = [](auto a, auto b, uint32_t dtype) {
    return digest::UlpDistance(reinterpret_cast<const std::byte*>(&a),
                               reinterpret_cast<const std::byte*>(&b), dtype);
  };
  EXPECT_EQ(distance(1.0f, 1.0f, 7), 0u);
  EXPECT_EQ(distance(1.0f, std::nextafter(1.0f, 2.0f), 7), 1u);
  EXPECT_EQ(distance(0.0f, -0.0f, 7), 0u);
  EXPECT_EQ(distance(std::numeric_limits<float>::denorm_min(),
                     -std::numeric_limits<float>::denorm_min(), 7),
            2u);
  EXPECT_EQ(distance(1.0f, std::numeric_limits<float>::quiet_NaN(), 7), UINT64_MAX);
  EXPECT_EQ(distance(-1.0, 1.0, 8), 2 * 0x3ff0000000000000u);
  EXPECT_EQ(distance(uint16_t{0x3c00}, uint16_t{0x3c05}, 6), 5u);
  EXPECT_EQ(distance(uint8_t{0x7f}, uint8_t{0x00}, 10), UINT64_MAX);
  EXPECT_EQ(distance(uint8_t{0x38}, uint8_t{0xb8}, 10), 0x70u);
  EXPECT_EQ(distance(int64_t{5}, int64_t{7}, 4), UINT64_MAX);
  EXPECT_EQ(distance(uint8_t{1}, uint8_t{2}, 1), UINT64_MAX);
}

TEST(RunningHashTest, PiecesHashAsTheWhole) {
  std::vector<std::byte> bytes(100000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 2654435761u >> 7);
  digest::RunningHash hash;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{240}, size_t{5000}, bytes.size()}) {
    const auto whole = std::span(bytes).first(size);
    hash.Begin();
    for (size_t at = 0; at < size; at += 777)
      hash.Add(whole.subspan(at, std::min<size_t>(777, size - at)));
    EXPECT_EQ(hash.Value(), digest::HashBytes(whole)) << size;
  }
}

}  // namespace
}  // namespace deja::preload
