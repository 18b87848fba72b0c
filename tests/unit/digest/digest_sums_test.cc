#include "digest/digest_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/fakes/cuda/kernels/digest_grid.h"

namespace deja::preload {
namespace {

constexpr uint32_t kTypeCount = 12;

std::vector<std::byte> RandomBytes(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(n + 8);
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const uint64_t word = random();
    std::memcpy(&bytes[i], &word, sizeof word);
  }
  bytes.resize(n);
  return bytes;
}

// Digests `bytes` as a device does, piece by piece.
digest::TensorDigest OnDevice(std::span<const std::byte> bytes, uint32_t dtype) {
  const digest::SummedTensor tensor(bytes.size());
  std::vector<digest::gpu::Pair> results(tensor.Results() / sizeof(digest::gpu::Pair) + 1);
  // The last piece may have more of a tail than the first one has of anything.
  std::vector<digest::gpu::Pair> scratch(tensor.ResultsOf(0) / sizeof(digest::gpu::Pair) + 70);
  auto* to = reinterpret_cast<unsigned char*>(results.data());
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  for (uint64_t piece = 0; piece < tensor.pieces; ++piece) {
    const uint64_t blocks = tensor.BlocksOf(piece);
    digest::gpu::Work work{data + piece * digest::kPieceBlocks * digest::gpu::kBlockBytes, blocks,
                           reinterpret_cast<unsigned char*>(scratch.data()), nullptr, 0};
    if (piece + 1 == tensor.pieces) {
      work.tail = data + tensor.tail_from;
      work.tail_bytes = tensor.tail_bytes;
    }
    cusim::RunDigestGrid(dtype < kTypeCount ? dtype : kTypeCount, work,
                         digest::ThreadBlocksFor(blocks));
    std::memcpy(to, work.results, tensor.ResultsOf(piece));
    to += tensor.ResultsOf(piece);
  }
  return digest::DigestOfSums(
      bytes.size(), dtype, {reinterpret_cast<const std::byte*>(results.data()), tensor.Results()});
}

void ExpectSame(std::span<const std::byte> bytes, uint32_t dtype, const std::string& what) {
  SCOPED_TRACE(what + ", " + std::to_string(bytes.size()) + " bytes of type " +
               std::to_string(dtype));
  const digest::TensorDigest want = digest::DigestTensor(bytes, dtype);
  const digest::TensorDigest got = OnDevice(bytes, dtype);
  ASSERT_EQ(got.hash, want.hash);
  ASSERT_EQ(got.stats.nan_count, want.stats.nan_count);
  ASSERT_EQ(got.stats.inf_count, want.stats.inf_count);
  ASSERT_EQ(got.stats.min, want.stats.min);
  ASSERT_EQ(got.stats.max, want.stats.max);
  double magnitudes = 0;
  double squares = 0;
  const size_t size = digest::ElementSize(dtype);
  const size_t count = dtype < kTypeCount ? bytes.size() / size : 0;
  for (size_t i = 0; i < count; ++i) {
    const double v = digest::ElementAsDouble(&bytes[i * size], dtype);
    if (!std::isfinite(v)) continue;
    magnitudes += std::fabs(v);
    squares += v * v;
  }
  const double rounding = static_cast<double>(count) * 0x1p-52;
  if (std::isfinite(magnitudes)) {
    ASSERT_NEAR(got.stats.sum, want.stats.sum, rounding * magnitudes);
  }
  if (std::isfinite(squares)) {
    ASSERT_NEAR(got.stats.sum_squares, want.stats.sum_squares, rounding * squares);
  } else {
    ASSERT_EQ(got.stats.sum_squares, want.stats.sum_squares);
  }
}

TEST(DigestSums, EverySizeUpTo8KiB) {
  const std::vector<std::byte> bytes = RandomBytes(8192, 1);
  for (size_t size = 0; size <= bytes.size(); ++size)
    ExpectSame(std::span(bytes).first(size), size % 2 == 0 ? 7 : format::kRawBytes, "prefix");
}

TEST(DigestSums, EveryTypeAtEveryAlignment) {
  alignas(16) static std::byte room[40000 + 16];
  for (uint32_t dtype = 0; dtype <= kTypeCount; ++dtype) {
    for (size_t offset = 0; offset < 16; offset += offset < 2 ? 1 : 2) {
      for (size_t size : {1025, 8192, 8193, 9000, 39936, 40000}) {
        const std::vector<std::byte> bytes = RandomBytes(size, dtype * 100 + offset);
        std::memcpy(room + offset, bytes.data(), size);
        ExpectSame({room + offset, size}, dtype, "offset " + std::to_string(offset));
      }
    }
  }
}

TEST(DigestSums, LargeTensors) {
  const std::vector<std::byte> bytes = RandomBytes(3000001, 5);
  for (uint32_t dtype = 0; dtype < kTypeCount; ++dtype) {
    ExpectSame(bytes, dtype, "large");
    ExpectSame(std::span(bytes).first(1 << 20), dtype, "large");
  }
}

TEST(DigestSums, ATensorOfSeveralPieces) {
  constexpr size_t kPiece = digest::kPieceBlocks * digest::gpu::kBlockBytes;
  const std::vector<std::byte> bytes = RandomBytes(2 * kPiece + 12345, 6);
  for (size_t size : {kPiece, kPiece + 1, kPiece + 1024, kPiece + 1025, bytes.size()}) {
    const auto part = std::span(bytes).first(size);
    EXPECT_EQ(OnDevice(part, 5).hash, digest::HashBytes(part)) << size;
  }
  ExpectSame(bytes, 4, "pieces");
}

// What is likely to be in tensors: numbers of about the same size, here and there one that is none.
TEST(DigestSums, FloatsOfTheUsualKind) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(50000);
  for (float& v : values) v = normal(random);
  ExpectSame(std::as_bytes(std::span(values)), 7, "normal");
  values[0] = values[12345] = std::numeric_limits<float>::quiet_NaN();
  values[49999] = -std::numeric_limits<float>::infinity();
  values[49000] = std::numeric_limits<float>::infinity();
  values[7] = std::numeric_limits<float>::denorm_min();
  ExpectSame(std::as_bytes(std::span(values)), 7, "with others");
  std::vector<double> doubles(values.begin(), values.end());
  ExpectSame(std::as_bytes(std::span(doubles)), 8, "doubles");
}

TEST(DigestSums, NothingButNans) {
  const std::vector<std::byte> bytes(20000, std::byte{0xff});
  for (uint32_t dtype : {6, 7, 8, 9, 10, 11}) ExpectSame(bytes, dtype, "no number");
  std::vector<float> values(5000, std::numeric_limits<float>::quiet_NaN());
  values[4990] = -0.0F;  // in the tail
  ExpectSame(std::as_bytes(std::span(values)), 7, "one number");
  EXPECT_FALSE(std::signbit(OnDevice(std::as_bytes(std::span(values)), 7).stats.min));
}

TEST(DigestSums, SumsAreTheSameWhereTheyAreExact) {
  const std::vector<std::byte> bytes = RandomBytes(100003, 8);
  for (uint32_t dtype : {0, 1, 2, 3, 10}) {
    const format::TensorStats want = digest::ComputeStats(bytes, dtype);
    const format::TensorStats got = OnDevice(bytes, dtype).stats;
    EXPECT_EQ(got.sum, want.sum) << dtype;
    if (digest::ElementSize(dtype) == 1) {
      EXPECT_EQ(got.sum_squares, want.sum_squares) << dtype;
    }
  }
}

TEST(DigestSums, SumsThatDoNotFitAreInfinite) {
  const std::vector<double> values(4096, std::numeric_limits<double>::max());
  const format::TensorStats stats = OnDevice(std::as_bytes(std::span(values)), 8).stats;
  EXPECT_EQ(stats.sum, std::numeric_limits<double>::infinity());
  EXPECT_EQ(stats.sum_squares, std::numeric_limits<double>::infinity());
  EXPECT_EQ(stats.inf_count, 0U);
}

}  // namespace
}  // namespace deja::preload
