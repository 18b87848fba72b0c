// The bytes of a file of the trace: magic, frame header, types, limits. docs/FORMAT.md, "Files and
// frames", is the specification; nothing else in Deja knows these constants.
//
// A file is the magic and then frames. A frame is a header of 32 bytes and `stored_size` bytes of
// payload. The header has a checksum of its own, so that a reader can trust the length of a frame
// whose payload is damaged. So it tells a frame that stops at the end of the file (torn) from a
// length that is nonsense (corrupt).
#ifndef DEJA_FORMAT_WIRE_FRAME_FORMAT_H_
#define DEJA_FORMAT_WIRE_FRAME_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "format/wire/messages.h"

namespace deja::format {

inline constexpr char kEventsFile[] = "events.deja";
inline constexpr char kPayloadsFile[] = "payloads.deja";

inline constexpr size_t kMagicBytes = 8;
// The first byte catches transfers that drop the eighth bit, the line ends those in "text mode".
// The fifth byte is the format's major version.
inline constexpr std::array<uint8_t, kMagicBytes> kMagic = {0x89, 'D',  'J',  'A',
                                                            1,    '\r', '\n', 0x1a};
inline constexpr size_t kMagicMajorAt = 4;
// The first bytes of files from before format 1.0, which this Deja does not read.
inline constexpr std::array<uint8_t, 4> kMagicBefore1 = {'D', 'E', 'J', 'A'};

// First bytes of every frame header; what a reader looks for after damage.
inline constexpr std::array<uint8_t, 4> kSync = {0xde, 0x1a, 0xf7, 0xa3};

enum class FrameType : uint8_t {
  kHeader = 1,        // TraceHeader; the first frame of every file
  kEvents = 2,        // EventBatch
  kPayloadChunk = 3,  // PayloadChunk
  kIndex = 4,         // Index
  kFooter = 5,        // Footer
  kEnd = 6,           // 8 bytes: file offset of the footer frame; the last frame of a finished file
  kLeftOut = 7,       // LeftOut: of a copy that is smaller on purpose
  kPrediction = 8,    // Prediction: what predicted chunks after it are differences to
};

enum class FrameCodec : uint8_t { kNone = 0, kZstd = 1 };

inline constexpr size_t kFrameHeaderBytes = 32;
inline constexpr size_t kEndPayloadBytes = 8;
inline constexpr size_t kEndFrameBytes = kFrameHeaderBytes + kEndPayloadBytes;

// Limits: writers keep them, readers refuse what exceeds them before they allocate.
inline constexpr uint32_t kMaxFrameRawBytes = 16 << 20;          // of any frame, decoded
inline constexpr uint32_t kMaxFrameStoredBytes = 17 << 20;       // of any frame, in the file
inline constexpr uint64_t kMaxPayloadBytes = uint64_t{1} << 40;  // of one payload, decoded

struct FrameHeader {
  FrameType type{};
  FrameCodec codec{};
  uint32_t stored_size = 0;       // of the payload in the file
  uint32_t raw_size = 0;          // of the payload after decompression
  uint64_t payload_checksum = 0;  // Checksum() of the payload as stored
};

// XXH64, seed 0 (docs/decisions/0002-frame-checksum.md says why not another).
uint64_t Checksum(std::span<const std::byte> bytes);
// The checksum of `first` and then `second`.
uint64_t Checksum(std::span<const std::byte> first, std::span<const std::byte> second);

// The header as bytes, with its checksum.
std::array<std::byte, kFrameHeaderBytes> EncodeFrameHeader(const FrameHeader& header);

enum class HeaderCheck { kGood, kNoSync, kBadChecksum, kOverLimit };

// Checks sync marker, checksum and limits; fills `header` unless the first two fail.
HeaderCheck DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> bytes,
                              FrameHeader& header);

// The payload of an end frame: where the footer is.
inline std::array<std::byte, kEndPayloadBytes> EncodeEndPayload(uint64_t footer_offset) {
  std::array<std::byte, kEndPayloadBytes> bytes;
  std::memcpy(bytes.data(), &footer_offset, sizeof footer_offset);
  return bytes;
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_FRAME_FORMAT_H_
