// Huffman coding of one byte plane: few symbols, little structure, gigabytes a second.
//
// docs/FORMAT.md, "Huffman planes", is the specification. Four bit streams, one for each quarter of
// the bytes, give a decoder four independent chains of work. The encoder looks at a part of the
// bytes only; symbols that it did not see there are escaped.
//
// Pure functions, any thread. The decoder treats its input as hostile.
#ifndef DEJA_FORMAT_PLANES_HUFFMAN_CODEC_H_
#define DEJA_FORMAT_PLANES_HUFFMAN_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/result.h"

namespace deja::format {

// Buffers that are reused between calls; one thread at a time.
struct HuffmanWorkspace {
  std::vector<uint32_t> pairs;     // encoder: the code of two symbols; zeros between calls
  std::vector<std::byte> streams;  // encoder
  std::vector<uint64_t> table;     // decoder
  bool portable = false;           // as on a processor without AVX-512: the same bytes, slower
};

// Encodes `in`, at most 4 MiB, into `out`. Bytes written; 0 if they would be more than `room`.
size_t HuffmanEncode(std::span<const std::byte> in, std::byte* out, size_t room,
                     HuffmanWorkspace& workspace);

// Decodes into `out`, whose size is that of what was encoded.
Status HuffmanDecode(std::span<const std::byte> in, std::span<std::byte> out,
                     HuffmanWorkspace& workspace);

}  // namespace deja::format

#endif  // DEJA_FORMAT_PLANES_HUFFMAN_CODEC_H_
