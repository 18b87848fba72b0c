#include "format/wire/frame_format.h"

#include "format/wire/format_version.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format {

static_assert(kMagic[kMagicMajorAt] == kFormatMajor);

namespace {

// Offsets in the header.
constexpr size_t kTypeAt = 4;
constexpr size_t kCodecAt = 5;
constexpr size_t kReservedAt = 6;
constexpr size_t kStoredSizeAt = 8;
constexpr size_t kRawSizeAt = 12;
constexpr size_t kPayloadChecksumAt = 16;
constexpr size_t kHeaderChecksumAt = 24;

template <typename T>
void Store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

uint64_t Checksum(std::span<const std::byte> bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

uint64_t Checksum(std::span<const std::byte> first, std::span<const std::byte> second) {
  XXH64_state_t state;
  XXH64_reset(&state, 0);
  XXH64_update(&state, first.data(), first.size());
  XXH64_update(&state, second.data(), second.size());
  return XXH64_digest(&state);
}

std::array<std::byte, kFrameHeaderBytes> EncodeFrameHeader(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kSync.data(), kSync.size());
  Store(&bytes[kTypeAt], header.type);
  Store(&bytes[kCodecAt], header.codec);
  Store(&bytes[kReservedAt], uint16_t{0});
  Store(&bytes[kStoredSizeAt], header.stored_size);
  Store(&bytes[kRawSizeAt], header.raw_size);
  Store(&bytes[kPayloadChecksumAt], header.payload_checksum);
  Store(&bytes[kHeaderChecksumAt], Checksum(std::span(bytes).first(kHeaderChecksumAt)));
  return bytes;
}

HeaderCheck DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> bytes,
                              FrameHeader& header) {
  if (std::memcmp(bytes.data(), kSync.data(), kSync.size()) != 0) return HeaderCheck::kNoSync;
  if (Load<uint64_t>(&bytes[kHeaderChecksumAt]) != Checksum(bytes.first(kHeaderChecksumAt))) {
    return HeaderCheck::kBadChecksum;
  }
  header.type = Load<FrameType>(&bytes[kTypeAt]);
  header.codec = Load<FrameCodec>(&bytes[kCodecAt]);
  header.stored_size = Load<uint32_t>(&bytes[kStoredSizeAt]);
  header.raw_size = Load<uint32_t>(&bytes[kRawSizeAt]);
  header.payload_checksum = Load<uint64_t>(&bytes[kPayloadChecksumAt]);
  if (header.stored_size > kMaxFrameStoredBytes || header.raw_size > kMaxFrameRawBytes) {
    return HeaderCheck::kOverLimit;
  }
  return HeaderCheck::kGood;
}

}  // namespace deja::format
