// zstd for the payloads of frames. The decoder gets the decoded size, which its caller has checked
// against the limits of frame_format.h, and never produces more.
//
// The classes own their zstd context and reuse it; each object is used by one thread at a time.
#ifndef DEJA_FORMAT_WIRE_ZSTD_CODEC_H_
#define DEJA_FORMAT_WIRE_ZSTD_CODEC_H_

#include <cstddef>
#include <span>
#include <vector>

#include "common/result.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace deja::format {

class ZstdCompressor {
 public:
  // `level`: zstd's. One thread at a time.
  explicit ZstdCompressor(int level = 1);
  ~ZstdCompressor();
  ZstdCompressor(const ZstdCompressor&) = delete;
  ZstdCompressor& operator=(const ZstdCompressor&) = delete;

  void SetLevel(int level) { level_ = level; }
  // The compressed bytes, in a buffer that is valid until the next call; empty when compression
  // failed or does not make `raw` smaller: store `raw` then.
  std::span<const std::byte> Compress(std::span<const std::byte> raw);

 private:
  ZSTD_CCtx_s* context_;
  int level_;
  std::vector<std::byte> buffer_;
};

// Decompresses frames; one thread at a time.
class ZstdDecompressor {
 public:
  ZstdDecompressor();
  ~ZstdDecompressor();
  ZstdDecompressor(const ZstdDecompressor&) = delete;
  ZstdDecompressor& operator=(const ZstdDecompressor&) = delete;

  // Decodes one zstd frame that must fill `out` exactly.
  Status Decompress(std::span<const std::byte> stored, std::span<std::byte> out);

 private:
  ZSTD_DCtx_s* context_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_ZSTD_CODEC_H_
