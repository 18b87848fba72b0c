#include "format/planes/huffman_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <random>
#include <vector>

namespace deja::format {
namespace {

using Bytes = std::vector<std::byte>;

// Like exponents: few symbols, far from equally frequent.
Bytes Skewed(size_t size, double spread, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(120, spread);
  Bytes bytes(size);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(std::clamp(normal(random), 0.0, 255.0));
  return bytes;
}

double Entropy(const Bytes& bytes) {
  double counts[256] = {};
  for (const std::byte byte : bytes) ++counts[static_cast<size_t>(byte)];
  double bits = 0;
  for (const double count : counts)
    if (count != 0) bits -= count * std::log2(count / static_cast<double>(bytes.size()));
  return bits / 8;
}

// What the best code of whole bits takes: the sum of all inner nodes of its tree.
double BestHuffman(const Bytes& bytes) {
  uint64_t counts[256] = {};
  for (const std::byte byte : bytes) ++counts[static_cast<size_t>(byte)];
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> nodes;
  for (const uint64_t count : counts)
    if (count != 0) nodes.push(count);
  uint64_t bits = 0;
  while (nodes.size() > 1) {
    uint64_t node = nodes.top();
    nodes.pop();
    node += nodes.top();
    nodes.pop();
    nodes.push(node);
    bits += node;
  }
  return static_cast<double>(bits) / 8;
}

class HuffmanCodecTest : public testing::Test {
 protected:
  // By each encoder that this processor has: all make the same bytes.
  Bytes Encode(const Bytes& in) {
    Bytes out(2 * in.size() + 4096);
    Bytes again(out.size());
    out.resize(HuffmanEncode(in, out.data(), out.size(), workspace_));
    workspace_.portable = true;
    again.resize(HuffmanEncode(in, again.data(), again.size(), workspace_));
    workspace_.portable = false;
    EXPECT_EQ(out, again) << in.size() << " bytes";
    return out;
  }
  Status Decode(const Bytes& in, Bytes& out) { return HuffmanDecode(in, out, workspace_); }
  void ExpectComesBack(const Bytes& in) {
    Bytes out(in.size(), std::byte{0x5c});
    const Status decoded = Decode(Encode(in), out);
    ASSERT_TRUE(decoded) << decoded.error().message << ", " << in.size() << " bytes";
    ASSERT_EQ(in, out) << in.size() << " bytes";
  }

  HuffmanWorkspace workspace_;
};

TEST_F(HuffmanCodecTest, ExponentsTakeTheirEntropy) {
  for (const double spread : {1.0, 2.0, 10.0}) {
    const Bytes in = Skewed(400'000, spread);
    const auto size = static_cast<double>(Encode(in).size());
    EXPECT_LT(size, BestHuffman(in) * 1.01) << spread;
    // No code of whole bits comes near the entropy of few symbols.
    if (spread >= 2) {
      EXPECT_LT(size, Entropy(in) * 1.03) << spread;
    }
    ExpectComesBack(in);
  }
}

TEST_F(HuffmanCodecTest, SymbolsFarApartComeBack) {
  // Two groups, so that no window of 64 or 128 symbols has them all, at every place.
  for (const unsigned distance : {60u, 100u, 127u, 128u, 200u}) {
    for (unsigned shift = 0; shift < 256; shift += 19) {
      Bytes in = Skewed(40'000, 2, shift);
      for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<std::byte>(static_cast<unsigned>(in[i]) + shift +
                                       (i % 300 == 0 ? distance : 0));
      ExpectComesBack(in);
    }
  }
}

TEST_F(HuffmanCodecTest, EverySmallSizeComesBack) {
  for (size_t size = 1; size < 700; ++size) ExpectComesBack(Skewed(size, 3));
  for (size_t size = 32'700; size < 32'840; ++size) ExpectComesBack(Skewed(size, 3));
}

TEST_F(HuffmanCodecTest, UncountedBytesAreEscaped) {
  Bytes in = Skewed(300'000, 1);
  // Between the runs that are counted, next to each other, first and last.
  for (size_t at = 100; at < in.size(); at += 5000) in[at] = static_cast<std::byte>(at / 5000);
  for (size_t at = 70'000; at < 70'600; ++at) in[at] = static_cast<std::byte>(at);
  in.front() = std::byte{255};
  in.back() = std::byte{0};
  ExpectComesBack(in);
}

TEST_F(HuffmanCodecTest, NoiseRunsAndOneSymbolComeBack) {
  std::mt19937 random(2);
  Bytes noise(200'000);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  ExpectComesBack(noise);
  ExpectComesBack(Bytes(100'000, std::byte{7}));
  ExpectComesBack(Bytes(1, std::byte{255}));
  Bytes rare(100'000);
  for (size_t i = 0; i < 256; ++i) rare[i * 300] = static_cast<std::byte>(i);
  ExpectComesBack(rare);
}

TEST_F(HuffmanCodecTest, APlaneThatDoesNotFitIsNotWritten) {
  const Bytes in = Skewed(50'000, 3);
  const size_t size = Encode(in).size();
  Bytes out(size + 64, std::byte{0x5c});
  EXPECT_EQ(HuffmanEncode(in, out.data(), size - 1, workspace_), 0u);
  EXPECT_EQ(HuffmanEncode(in, out.data(), size, workspace_), size);
  for (size_t i = size; i < out.size(); ++i) EXPECT_EQ(out[i], std::byte{0x5c});
}

TEST_F(HuffmanCodecTest, EveryTruncationIsRefused) {
  const Bytes in = Skewed(3000, 3);
  const Bytes encoded = Encode(in);
  Bytes out(in.size());
  for (size_t cut = 0; cut < encoded.size(); ++cut)
    ASSERT_FALSE(Decode(Bytes(encoded.begin(), encoded.begin() + static_cast<ptrdiff_t>(cut)), out))
        << cut;
  Bytes longer = encoded;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(Decode(longer, out));
}

TEST_F(HuffmanCodecTest, DamageNeverWritesOutsideOfTheOutput) {
  std::mt19937 random(3);
  const Bytes in = Skewed(6000, 3);
  const Bytes encoded = Encode(in);
  for (int round = 0; round < 5000; ++round) {
    Bytes damaged = encoded;
    for (int i = 0; i < 3; ++i)
      damaged[random() % (round % 2 != 0 ? 60 : damaged.size())] = static_cast<std::byte>(random());
    Bytes out(in.size() + 64, std::byte{0x5c});
    (void)HuffmanDecode(damaged, std::span(out).first(in.size()), workspace_);
    for (size_t i = in.size(); i < out.size(); ++i) ASSERT_EQ(out[i], std::byte{0x5c});
  }
}

}  // namespace
}  // namespace deja::format
