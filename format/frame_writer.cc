#include "format/frame_writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "format/message_codec.h"

namespace deja::format {

FrameWriter::FrameWriter(std::unique_ptr<AppendFile> file, int zstd_level)
    : file_(std::move(file)), zstd_(zstd_level) {}

Status FrameWriter::Append(std::span<const std::byte> first, std::span<const std::byte> second) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  const uint64_t good_size = file_->size();
  Status written = file_->Append(first, second);
  if (written) return {};
  failure_ = written.error();
  // If this fails too, readers find a torn frame and say so.
  (void)file_->Truncate(good_size);
  return written;
}

Result<uint64_t> FrameWriter::Write(FrameType type, std::span<const std::byte> payload) {
  const bool compress = type != FrameType::kPayloadChunk && type != FrameType::kEnd &&
                        payload.size() <= kMaxFrameRawBytes;
  return WriteCompressed(type, payload,
                         compress ? zstd_.Compress(payload) : std::span<const std::byte>());
}

Result<uint64_t> FrameWriter::WriteCompressed(FrameType type, std::span<const std::byte> payload,
                                              std::span<const std::byte> compressed) {
  if (payload.size() > kMaxFrameRawBytes) {
    return Fail(ErrorCode::kLimit, "a frame of " + std::to_string(payload.size()) +
                                       " bytes is larger than the format allows");
  }
  if (file_->size() == 0) DEJA_RETURN_IF_ERROR(Append(std::as_bytes(std::span(kMagic)), {}));

  FrameHeader header;
  header.type = type;
  header.raw_size = static_cast<uint32_t>(payload.size());
  if (!compressed.empty()) {
    header.codec = FrameCodec::kZstd;
    payload = compressed;
  }
  header.stored_size = static_cast<uint32_t>(payload.size());
  header.payload_checksum = Checksum(payload);
  const uint64_t offset = file_->size();
  DEJA_RETURN_IF_ERROR(Append(EncodeFrameHeader(header), payload));
  return offset;
}

Result<uint64_t> FrameWriter::WriteHeader(const TraceHeader& header) {
  return Write(FrameType::kHeader, AsBytes(EncodeToString(header)));
}

Result<uint64_t> FrameWriter::WriteIndex(const Index& index) {
  constexpr size_t kEnough = kMaxFrameRawBytes / 4;
  const uint64_t first = std::max<uint64_t>(file_->size(), kMagicBytes);
  std::string pending;
  const auto flush = [&]() -> Status {
    DEJA_RETURN_IF_ERROR(Write(FrameType::kIndex, AsBytes(pending)));
    pending.clear();
    return {};
  };
  // Index is repeated fields, so messages that hold some of the elements each are concatenated
  // to one that holds all: a frame may end between any two elements.
  const auto add = [&](uint32_t field, const auto& element) -> Status {
    const std::string encoded = EncodeToString(element);
    std::byte prefix[1 + 10];
    WireWriter writer(prefix);
    writer.Tag(field, WireType::kBytes);
    writer.Varint(encoded.size());
    pending.append(reinterpret_cast<const char*>(prefix), writer.size());
    pending.append(encoded);
    return pending.size() < kEnough ? Status{} : flush();
  };
  for (const BatchInfo& batch : index.batches) DEJA_RETURN_IF_ERROR(add(1, batch));
  for (const PayloadInfo& payload : index.payloads) DEJA_RETURN_IF_ERROR(add(2, payload));
  for (const PayloadPieces& pieces : index.pieces) DEJA_RETURN_IF_ERROR(add(3, pieces));
  if (!pending.empty()) DEJA_RETURN_IF_ERROR(flush());
  return first;
}

Status FrameWriter::WriteFooter(const Footer& footer) {
  DEJA_ASSIGN_OR_RETURN(const uint64_t offset,
                        Write(FrameType::kFooter, AsBytes(EncodeToString(footer))));
  DEJA_RETURN_IF_ERROR(Write(FrameType::kEnd, EncodeEndPayload(offset)));
  return {};
}

Status FrameWriter::Sync() {
  if (failure_) return tl::unexpected<Error>(*failure_);
  Status synced = file_->Sync();
  if (!synced) failure_ = synced.error();
  return synced;
}

}  // namespace deja::format
