#include "format/tensor/tensor_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace deja::format {
namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
Bytes Fill(size_t count, const std::function<T(size_t)>& value) {
  Bytes bytes(count * sizeof(T));
  for (size_t i = 0; i < count; ++i) {
    const T v = value(i);
    std::memcpy(bytes.data() + i * sizeof(T), &v, sizeof v);
  }
  return bytes;
}

Bytes NormalFloats(size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  return Fill<float>(count, [&](size_t) { return normal(random); });
}

Bytes Bfloat16s(size_t count) {
  const Bytes floats = NormalFloats(count);
  Bytes bytes(count * 2);
  for (size_t i = 0; i < count; ++i) std::memcpy(&bytes[2 * i], &floats[4 * i + 2], 2);
  return bytes;
}

Bytes NoiseBytes(size_t size) {
  std::mt19937 random(2);
  return Fill<uint8_t>(size, [&](size_t) { return static_cast<uint8_t>(random()); });
}

// Encodes, decodes, compares; returns codec and encoded size.
EncodedTensor RoundTrip(const Bytes& in, uint32_t element_size, Bytes& scratch) {
  const EncodedTensor encoded = EncodeTensor(in, element_size, scratch);
  Bytes out(in.size(), std::byte{0xaa});
  const Status decoded = DecodeTensor(encoded.codec, element_size, encoded.bytes, out);
  EXPECT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(in, out) << "element size " << element_size << ", " << in.size() << " bytes";
  EXPECT_LE(encoded.bytes.size(), in.size());
  return encoded;
}

TEST(TensorCodecTest, TrainedLookingFloatsShrinkToTheEntropyOfTheirExponents) {
  Bytes scratch;
  const Bytes floats = NormalFloats(kPayloadChunkBytes / 4);
  const EncodedTensor fp32 = RoundTrip(floats, 4, scratch);
  EXPECT_EQ(fp32.codec, TensorCodec::kPlanes);
  EXPECT_LT(fp32.bytes.size(), floats.size() * 85 / 100);
  const Bytes halves = Bfloat16s(kPayloadChunkBytes / 2);
  EXPECT_LT(RoundTrip(halves, 2, scratch).bytes.size(), halves.size() * 68 / 100);
}

TEST(TensorCodecTest, ZerosShrinkToAlmostNothing) {
  Bytes scratch;
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    EXPECT_LT(RoundTrip(Bytes(kPayloadChunkBytes), size, scratch).bytes.size(), 200u);
  }
}

TEST(TensorCodecTest, NoiseIsStoredWithoutACopy) {
  Bytes scratch;
  const Bytes noise = NoiseBytes(kPayloadChunkBytes);
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    const EncodedTensor encoded = RoundTrip(noise, size, scratch);
    EXPECT_EQ(encoded.codec, TensorCodec::kStored);
    EXPECT_EQ(encoded.bytes.data(), noise.data());
  }
}

TEST(TensorCodecTest, BytesOutsideTheSampleStillComeBack) {
  Bytes scratch;
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    Bytes sparse(kPayloadChunkBytes);
    sparse[kPayloadChunkBytes - 700'003] = std::byte{1};
    RoundTrip(sparse, size, scratch);
    Bytes half = NoiseBytes(kPayloadChunkBytes);
    std::fill(half.begin(), half.begin() + kPayloadChunkBytes / 2, std::byte{0});
    EXPECT_LT(RoundTrip(half, size, scratch).bytes.size(), half.size() * 60 / 100);
  }
}

// Activations behind a rectifier: zeros here and there, and rows of zeros; of single bytes, whose
// zeros are as cheap as any byte that is frequent, only the rows.
Bytes Sparse(size_t elements, uint32_t element_size, double share) {
  std::mt19937 random(5);
  std::bernoulli_distribution is_zero(share);
  Bytes bytes = element_size == 2 ? Bfloat16s(elements) : NormalFloats(elements);
  if (element_size == 8) bytes.resize(elements * 8, std::byte{9});
  if (element_size == 1) bytes = NoiseBytes(elements);
  for (size_t i = 0; i < elements; ++i)
    if (element_size == 1 ? i / 1000 % 2 == 0 : is_zero(random) || i / 1000 % 7 == 0)
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(i * element_size), element_size,
                  std::byte{0});
  return bytes;
}

TEST(TensorCodecTest, ZerosCostABitOrLess) {
  Bytes scratch;
  const size_t elements = kPayloadChunkBytes / 4;
  for (const double share : {0.05, 0.5, 0.95}) {
    const Bytes sparse = Sparse(elements, 4, share);
    const double kept = (1 - share) * 6 / 7;
    const auto most = static_cast<double>(elements) * (kept * 4 / 1.18 + 1.0 / 8);
    EXPECT_LT(static_cast<double>(RoundTrip(sparse, 4, scratch).bytes.size()), most) << share;
  }
}

// Like the difference of bf16 parameters to the step before: four in five did not change, the
// others in their lowest bits. A plane of almost only zeros costs a bit a byte, so the zeros are
// left out.
TEST(TensorCodecTest, UnchangedElementsCostLessThanABitAPlane) {
  Bytes scratch;
  std::mt19937 random(11);
  std::bernoulli_distribution changed(0.2);
  std::geometric_distribution<unsigned> last_bit(0.5);
  Bytes in(kPayloadChunkBytes);
  for (size_t at = 0; at < in.size(); at += 2) {
    const unsigned difference = changed(random) ? (2u << last_bit(random)) - 1 : 0;
    in[at] = std::byte(difference & 0xff);
    in[at + 1] = std::byte(difference >> 8 & 0xff);
  }
  // Whether an element changed takes 0.72 bits, how 2, and its upper byte 1.
  const double bits = 0.72 + 0.2 * (2 + 1);
  EXPECT_LT(static_cast<double>(RoundTrip(in, 2, scratch).bytes.size()),
            static_cast<double>(in.size()) * 1.1 * bits / 16);
}

TEST(TensorCodecTest, SparseTensorsOfEverySizeComeBack) {
  Bytes scratch;
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    for (size_t elements = 100; elements < 400; ++elements)
      RoundTrip(Sparse(elements, size, 0.6), size, scratch);
    for (size_t odd = 0; odd < size; ++odd) {
      Bytes bytes = Sparse(30'000, size, 0.6);
      bytes.resize(bytes.size() + odd, std::byte{7});
      RoundTrip(bytes, size, scratch);
    }
  }
}

TEST(TensorCodecTest, DamagedSparseTensorsAreRefusedOrStayInside) {
  Bytes scratch;
  std::mt19937 random(3);
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    // The number of elements is no multiple of 8.
    const Bytes in = Sparse(30'003, size, 0.6);
    const EncodedTensor encoded = EncodeTensor(in, size, scratch);
    ASSERT_EQ(encoded.codec, TensorCodec::kPlanes);
    ASSERT_EQ(encoded.bytes[0] & std::byte{2}, std::byte{2});
    Bytes out(in.size() + 64, std::byte{0x5c});
    for (int round = 0; round < 500; ++round) {
      Bytes damaged(encoded.bytes.begin(), encoded.bytes.end());
      for (int i = 0; i < 3; ++i)
        damaged[random() % (round % 2 ? 60 : damaged.size())] = std::byte(random());
      (void)DecodeTensor(TensorCodec::kPlanes, size, damaged, std::span(out).first(in.size()));
      for (size_t i = in.size(); i < out.size(); ++i) ASSERT_EQ(out[i], std::byte{0x5c});
    }
    for (size_t cut = 0; cut < encoded.bytes.size(); cut += 1 + cut / 16) {
      EXPECT_FALSE(DecodeTensor(encoded.codec, size, encoded.bytes.first(cut),
                                std::span(out).first(in.size())))
          << cut;
    }
  }
}

TEST(TensorCodecTest, ABitmapWithMoreElementsThanTheChunkIsRefused) {
  // Nine elements of one byte: a stored bitmap of two bytes, and a constant plane.
  Bytes chunk(1 + 2 * 10 + 2);
  chunk[0] = std::byte{2};
  chunk[1] = std::byte{1};
  chunk[2] = std::byte{7};
  chunk[13] = std::byte{21};
  chunk[17] = std::byte{2};
  chunk[21] = std::byte{0x11};
  chunk[22] = std::byte{0x01};
  Bytes out(9);
  ASSERT_TRUE(DecodeTensor(TensorCodec::kPlanes, 1, chunk, out));
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], std::byte(i % 4 == 0 ? 7 : 0)) << i;
  chunk[22] = std::byte{0x03};
  EXPECT_FALSE(DecodeTensor(TensorCodec::kPlanes, 1, chunk, out));
}

TEST(TensorCodecTest, TextIsSearchedForMatches) {
  Bytes scratch;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "rank " + std::to_string(i * 7919 % 1000) + " arrived\n";
  const auto bytes = std::as_bytes(std::span(text));
  const Bytes in(bytes.begin(), bytes.end());
  EXPECT_LT(RoundTrip(in, 1, scratch).bytes.size(), in.size() / 4);
}

TEST(TensorCodecTest, EverySmallSizeComesBack) {
  Bytes scratch;
  const Bytes floats = NormalFloats(300);
  for (size_t size = 0; size < floats.size(); ++size) {
    const Bytes part(floats.begin(), floats.begin() + static_cast<ptrdiff_t>(size));
    for (const uint32_t element : {1u, 2u, 4u, 8u}) RoundTrip(part, element, scratch);
  }
}

TEST(TensorCodecTest, SizesAroundBlocksOfZstdComeBack) {
  Bytes scratch;
  for (const size_t planes : {size_t{1}, size_t{2}}) {
    for (int delta = -9; delta <= 9; ++delta) {
      const Bytes floats = NormalFloats((planes * (128 << 10)) + 4);
      const auto size = static_cast<ptrdiff_t>(planes * 4 * (128 << 10)) + delta;
      if (size > static_cast<ptrdiff_t>(kPayloadChunkBytes)) continue;
      RoundTrip(Bytes(floats.begin(), floats.begin() + size), 4, scratch);
    }
  }
}

TEST(TensorCodecTest, IntegersAndDoublesComeBackSmaller) {
  Bytes scratch;
  const Bytes counters = Fill<int64_t>(100'000, [](size_t i) { return static_cast<int64_t>(i); });
  EXPECT_LT(RoundTrip(counters, 8, scratch).bytes.size(), counters.size() / 3);
  const Bytes labels = Fill<int32_t>(100'000, [](size_t i) { return int32_t(i * 7 % 10); });
  EXPECT_LT(RoundTrip(labels, 4, scratch).bytes.size(), labels.size() / 4);
}

TEST(TensorCodecTest, FastIsATenthLarger) {
  Bytes scratch;
  const Bytes halves = Bfloat16s(kPayloadChunkBytes / 2);
  const size_t small = EncodeTensor(halves, 2, scratch).bytes.size();
  const EncodedTensor fast = EncodeTensor(halves, 2, scratch, CodecEffort::kFast);
  ASSERT_EQ(fast.codec, TensorCodec::kPlanes);
  EXPECT_EQ(fast.bytes[1 + 10], std::byte{4}) << "the exponents are packed";
  EXPECT_LT(fast.bytes.size(), small * 115 / 100);
  Bytes out(halves.size());
  ASSERT_TRUE(DecodeTensor(fast.codec, 2, fast.bytes, out));
  EXPECT_EQ(out, halves);
}

TEST(TensorCodecTest, FastComesBackWhateverItIs) {
  Bytes scratch;
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    for (const Bytes& in : {NormalFloats(5001), Sparse(30'003, size, 0.6), NoiseBytes(10'000),
                            Bytes(9'000, std::byte{7}), Bytes(100)}) {
      const EncodedTensor encoded = EncodeTensor(in, size, scratch, CodecEffort::kFast);
      EXPECT_LE(encoded.bytes.size(), in.size());
      Bytes out(in.size(), std::byte{0xaa});
      ASSERT_TRUE(DecodeTensor(encoded.codec, size, encoded.bytes, out));
      EXPECT_EQ(out, in) << size;
    }
  }
}

TEST(TensorCodecTest, EveryTruncationIsRefused) {
  Bytes scratch;
  const Bytes floats = NormalFloats(2000);
  for (const CodecEffort effort : {CodecEffort::kSmall, CodecEffort::kFast}) {
    for (const uint32_t size : {1u, 2u, 4u, 8u}) {
      const EncodedTensor encoded = EncodeTensor(floats, size, scratch, effort);
      Bytes out(floats.size());
      for (size_t cut = 0; cut < encoded.bytes.size(); ++cut) {
        const Status decoded = DecodeTensor(encoded.codec, size, encoded.bytes.first(cut), out);
        ASSERT_FALSE(decoded) << "cut at " << cut;
      }
    }
  }
}

TEST(TensorCodecTest, DamageNeverWritesOutsideOfTheOutput) {
  Bytes scratch;
  std::mt19937 random(3);
  const Bytes halves = Bfloat16s(1500);
  const EncodedTensor encoded = EncodeTensor(halves, 2, scratch);
  ASSERT_EQ(encoded.codec, TensorCodec::kPlanes);
  for (int round = 0; round < 20'000; ++round) {
    Bytes damaged(encoded.bytes.begin(), encoded.bytes.end());
    for (int i = 0; i < 3; ++i)
      damaged[random() % (round % 2 ? 40 : damaged.size())] = std::byte(random());
    Bytes out(halves.size() + 64, std::byte{0x5c});
    (void)DecodeTensor(TensorCodec::kPlanes, 2, damaged, std::span(out).first(halves.size()));
    for (size_t i = halves.size(); i < out.size(); ++i) ASSERT_EQ(out[i], std::byte{0x5c});
  }
}

TEST(TensorCodecTest, UnknownCodecsModesFlagsAndSizesAreRefused) {
  Bytes out(400);
  const Bytes in(400);
  EXPECT_EQ(DecodeTensor(TensorCodec(3), 4, in, out).error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(DecodeTensor(TensorCodec::kPlanes, 3, in, out));
  Bytes chunk(1 + 4 * 10);
  chunk[0] = std::byte{4};
  EXPECT_FALSE(DecodeTensor(TensorCodec::kPlanes, 4, chunk, out));
  chunk[0] = std::byte{0};
  chunk[1] = std::byte{9};
  EXPECT_FALSE(DecodeTensor(TensorCodec::kPlanes, 4, chunk, out));
  Bytes large(kPayloadChunkBytes + 1);
  EXPECT_EQ(DecodeTensor(TensorCodec::kStored, 1, large, large).error().code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace deja::format
