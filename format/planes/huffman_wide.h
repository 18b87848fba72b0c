// The encoder of Huffman planes for processors with AVX-512 VBMI. It takes 64 symbols at a time,
// looked up in registers and put together by shifts of whole vectors. The bytes it makes are those
// of the portable encoder. x86-64 only; nothing may be called unless HasWideEncoder().
#ifndef DEJA_FORMAT_PLANES_HUFFMAN_WIDE_H_
#define DEJA_FORMAT_PLANES_HUFFMAN_WIDE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/planes/huffman_bits.h"

namespace deja::format::huffman {

bool HasWideEncoder();

// Which bytes the vectors look up: a window, as a smaller table is a faster one. Bytes outside of
// it are encoded one by one, so there must be few.
struct CodeWindow {
  uint8_t first = 0;
  unsigned size = 256;  // 64, 128 or 256

  // The smallest that has nearly all of what was counted.
  static CodeWindow For(const std::array<uint32_t, kSymbols>& counts);
};

// One stream: encodes `in` to `out`, which has eight bytes more than it needs; the end of what was
// written.
std::byte* EncodeWide(std::span<const std::byte> in, const ByteCodes& codes, CodeWindow window,
                      std::byte* out);

}  // namespace deja::format::huffman

#endif  // DEJA_FORMAT_PLANES_HUFFMAN_WIDE_H_
