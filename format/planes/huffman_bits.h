// The encoder's side of Huffman planes: what each byte becomes, and bits to bytes.
#ifndef DEJA_FORMAT_PLANES_HUFFMAN_BITS_H_
#define DEJA_FORMAT_PLANES_HUFFMAN_BITS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/planes/huffman_code.h"

namespace deja::format::huffman {

// Bits of one stream, lowest first; at most 63 before a Flush(). Needs eight bytes of room after
// what is written.
struct BitWriter {
  std::byte* at;
  uint64_t bits = 0;
  unsigned count = 0;

  // Appends the low `length` bits of `code`. The caller flushes before there are more than 64.
  void Add(uint64_t code, unsigned length) {
    bits |= code << count;
    count += length;
  }
  // Leaves at most 7 bits.
  void Flush() {
    Store(at, bits);
    at += count >> 3;
    bits >>= count & ~7u;
    count &= 7;
  }
  std::byte* Finish() {
    Flush();
    return at + (count != 0 ? 1 : 0);
  }
};

// What each byte becomes: its code, or the escape's and itself.
class ByteCodes {
 public:
  // From the tables of a plane's code.
  ByteCodes(const Lengths& lengths, const Codes& codes) {
    for (size_t symbol = 0; symbol < 256; ++symbol) {
      const bool known = lengths[symbol] != 0;
      const size_t from = known ? symbol : kEscape;
      uint32_t code = codes[from];
      unsigned length = lengths[from];
      if (!known) {
        code |= static_cast<uint32_t>(symbol) << length;
        length += 8;
      } else {
        seen_[seen_count_++] = static_cast<uint8_t>(symbol);
      }
      codes_[symbol] = code;
      lengths_[symbol] = static_cast<uint8_t>(length);
    }
  }

  // Bytes that have a code.
  [[nodiscard]] std::span<const uint8_t> seen() const { return {seen_.data(), seen_count_}; }
  [[nodiscard]] uint32_t code(uint8_t byte) const { return codes_[byte]; }
  [[nodiscard]] unsigned length(uint8_t byte) const { return lengths_[byte]; }

  // Write the codes of one byte, or of four, and flush. `out` has room for them.
  void AddOne(BitWriter& out, std::byte byte) const {
    Add(out, byte);
    out.Flush();
  }
  void AddFour(BitWriter& out, const std::byte* in) const {
    Add(out, in[0]);
    Add(out, in[1]);
    out.Flush();  // before there are more than 64 bits
    Add(out, in[2]);
    Add(out, in[3]);
    out.Flush();
  }

 private:
  void Add(BitWriter& out, std::byte byte) const {
    out.Add(codes_[static_cast<uint8_t>(byte)], lengths_[static_cast<uint8_t>(byte)]);
  }

  std::array<uint32_t, 256> codes_;
  std::array<uint8_t, 256> lengths_;
  std::array<uint8_t, 256> seen_;
  size_t seen_count_ = 0;
};

}  // namespace deja::format::huffman

#endif  // DEJA_FORMAT_PLANES_HUFFMAN_BITS_H_
