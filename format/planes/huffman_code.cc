#include "format/planes/huffman_code.h"

namespace deja::format::huffman {

bool MakeCodes(const Lengths& lengths, Codes& codes) {
  std::array<uint32_t, kMaxLength + 2> next{};
  std::array<uint32_t, kMaxLength + 1> count{};
  for (const uint8_t length : lengths) ++count[length];
  count[0] = 0;
  uint32_t code = 0;
  for (unsigned length = 1; length <= kMaxLength; ++length) {
    code = (code + count[length - 1]) << 1;
    next[length] = code;
  }
  if (code + count[kMaxLength] != 1u << kMaxLength) return false;
  for (size_t symbol = 0; symbol < kSymbols; ++symbol) {
    const unsigned length = lengths[symbol];
    if (length == 0) continue;
    uint32_t reversed = 0;
    for (uint32_t bits = next[length]++, i = 0; i < length; ++i, bits >>= 1)
      reversed = reversed << 1 | (bits & 1);
    codes[symbol] = reversed;
  }
  return true;
}

void MakeLengths(std::array<uint32_t, kSymbols> counts, Lengths& lengths) {
  std::array<uint16_t, kSymbols> order;
  size_t used = 0;
  for (size_t symbol = 0; symbol < kSymbols; ++symbol)
    if (counts[symbol] != 0) order[used++] = static_cast<uint16_t>(symbol);
  for (;;) {
    std::sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(used),
              [&](uint16_t a, uint16_t b) {
                return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
              });
    // Leaves in order of weight, then inner nodes, which come in order of weight by themselves.
    std::array<uint64_t, 2 * kSymbols> weight;
    std::array<uint16_t, 2 * kSymbols> parent;
    for (size_t i = 0; i < used; ++i) weight[i] = counts[order[i]];
    size_t leaf = 0;
    size_t inner = used;
    for (size_t node = used; node < 2 * used - 1; ++node) {
      weight[node] = 0;
      for (int child = 0; child < 2; ++child) {
        const bool take_leaf = leaf < used && (inner >= node || weight[leaf] <= weight[inner]);
        const size_t taken = take_leaf ? leaf++ : inner++;
        weight[node] += weight[taken];
        parent[taken] = static_cast<uint16_t>(node);
      }
    }
    std::array<uint8_t, 2 * kSymbols> depth;
    depth[2 * used - 2] = 0;
    unsigned longest = 0;
    for (size_t node = 2 * used - 2; node-- > 0;) {
      depth[node] = static_cast<uint8_t>(depth[parent[node]] + 1);
      longest = std::max<unsigned>(longest, depth[node]);
    }
    if (longest <= kMaxLength) {
      lengths.fill(0);
      for (size_t i = 0; i < used; ++i) lengths[order[i]] = depth[i];
      return;
    }
    // Flatter, and again.
    for (size_t i = 0; i < used; ++i) counts[order[i]] = counts[order[i]] / 2 + 1;
  }
}

}  // namespace deja::format::huffman
