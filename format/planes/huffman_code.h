// Codes of a Huffman plane: docs/FORMAT.md, "Huffman planes". Private to the encoder and the
// decoder.
#ifndef DEJA_FORMAT_PLANES_HUFFMAN_CODE_H_
#define DEJA_FORMAT_PLANES_HUFFMAN_CODE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace deja::format::huffman {

inline constexpr size_t kSymbols = 257;  // the bytes, and an escape: eight bits follow
inline constexpr size_t kEscape = 256;
inline constexpr unsigned kMaxLength = 11;  // of a code
inline constexpr size_t kStreams = 4;
inline constexpr size_t kMaxBytes = 4 << 20;
// First and last byte that has a code, the length of the escape's, then the lengths, then the sizes
// of the first three streams.
inline constexpr size_t kFixedHeaderBytes = 3;
inline constexpr size_t kSizeBytes = 4;

using Lengths = std::array<uint8_t, kSymbols>;
using Codes = std::array<uint32_t, kSymbols>;

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void Store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

struct Quarters {
  explicit Quarters(size_t bytes) : size((bytes + kStreams - 1) / kStreams), total(bytes) {}
  [[nodiscard]] size_t Begin(size_t stream) const { return std::min(stream * size, total); }
  size_t size;
  size_t total;
};

// Canonical: shorter first, then by symbol; the first bit is the lowest. False unless the lengths
// make a complete code.
bool MakeCodes(const Lengths& lengths, Codes& codes);

// Lengths of a Huffman code, none above kMaxLength. At least two counts must not be zero.
void MakeLengths(std::array<uint32_t, kSymbols> counts, Lengths& lengths);

}  // namespace deja::format::huffman

#endif  // DEJA_FORMAT_PLANES_HUFFMAN_CODE_H_
