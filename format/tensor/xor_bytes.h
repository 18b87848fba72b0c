// XorBytes: the difference of two runs of bytes, which is also how one is had back from the other.
#ifndef DEJA_FORMAT_TENSOR_XOR_BYTES_H_
#define DEJA_FORMAT_TENSOR_XOR_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace deja::format {

// out[i] = a[i] ^ b[i]; `out` may be `a` or `b`.
inline void XorBytes(const std::byte* a, const std::byte* b, size_t size, std::byte* out) {
  // The compiler makes of these what registers the target has.
  using Block = uint64_t __attribute__((vector_size(64)));
  size_t at = 0;
  for (; at + sizeof(Block) <= size; at += sizeof(Block)) {
    Block x;
    Block y;
    std::memcpy(&x, a + at, sizeof x);
    std::memcpy(&y, b + at, sizeof y);
    x ^= y;
    std::memcpy(out + at, &x, sizeof x);
  }
  for (; at < size; ++at) out[at] = a[at] ^ b[at];
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_TENSOR_XOR_BYTES_H_
