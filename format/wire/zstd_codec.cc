#include "format/wire/zstd_codec.h"

#include <zstd.h>

#include <string>

namespace deja::format {

ZstdCompressor::ZstdCompressor(int level) : context_(ZSTD_createCCtx()), level_(level) {}

ZstdCompressor::~ZstdCompressor() {
  ZSTD_freeCCtx(context_);
}

std::span<const std::byte> ZstdCompressor::Compress(std::span<const std::byte> raw) {
  if (context_ == nullptr || raw.empty()) return {};
  const size_t bound = ZSTD_compressBound(raw.size());
  if (buffer_.size() < bound) buffer_.resize(bound);
  const size_t size =
      ZSTD_compressCCtx(context_, buffer_.data(), buffer_.size(), raw.data(), raw.size(), level_);
  if (ZSTD_isError(size) || size >= raw.size()) return {};
  return {buffer_.data(), size};
}

// The context is made by the first call: most frames are stored as they are.
ZstdDecompressor::ZstdDecompressor() : context_(nullptr) {}

ZstdDecompressor::~ZstdDecompressor() {
  ZSTD_freeDCtx(context_);
}

Status ZstdDecompressor::Decompress(std::span<const std::byte> stored, std::span<std::byte> out) {
  if (context_ == nullptr) context_ = ZSTD_createDCtx();
  if (context_ == nullptr) return Fail(ErrorCode::kLimit, "no memory for a zstd context");
  const size_t size =
      ZSTD_decompressDCtx(context_, out.data(), out.size(), stored.data(), stored.size());
  if (ZSTD_isError(size)) {
    return Fail(ErrorCode::kCorrupt, std::string("zstd: ") + ZSTD_getErrorName(size));
  }
  if (size != out.size()) {
    return Fail(ErrorCode::kCorrupt, "zstd: " + std::to_string(size) + " bytes instead of " +
                                         std::to_string(out.size()));
  }
  return {};
}

}  // namespace deja::format
