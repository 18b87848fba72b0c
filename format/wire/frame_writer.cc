#include "format/wire/frame_writer.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "format/wire/batch_info.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

// As an element of field `field`.
template <typename Message>
void AppendElement(uint32_t field, const Message& element, std::string& out) {
  const std::string encoded = EncodeToString(element);
  std::byte prefix[1 + 10];
  WireWriter writer(prefix);
  writer.Tag(field, WireType::kBytes);
  writer.Varint(encoded.size());
  out.append(reinterpret_cast<const char*>(prefix), writer.size());
  out.append(encoded);
}

// Those of an index in memory.
class ElementsOfIndex final : public IndexElements {
 public:
  explicit ElementsOfIndex(const Index& index) {
    elements_.reserve(index.payloads.size() + index.pieces.size());
    for (const PayloadInfo& payload : index.payloads) elements_.push_back({&payload, nullptr});
    for (const PayloadPieces& pieces : index.pieces) elements_.push_back({nullptr, &pieces});
    std::stable_sort(
        elements_.begin(), elements_.end(),
        [](const IndexElement& a, const IndexElement& b) { return a.hash() < b.hash(); });
  }

  [[nodiscard]] size_t size() const override { return elements_.size(); }
  IndexElement Next() override {
    return next_ < elements_.size() ? elements_[next_++] : IndexElement();
  }

 private:
  std::vector<IndexElement> elements_;
  size_t next_ = 0;
};

}  // namespace

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

Status FrameWriter::Begin(size_t payload_bytes) {
  if (payload_bytes > kMaxFrameRawBytes) {
    return Fail(ErrorCode::kLimit, "a frame of " + std::to_string(payload_bytes) +
                                       " bytes is larger than the format allows");
  }
  return file_->size() == 0 ? Append(std::as_bytes(std::span(kMagic)), {}) : Status{};
}

Result<uint64_t> FrameWriter::WriteInTwo(FrameType type, std::span<const std::byte> head,
                                         std::span<const std::byte> data) {
  const size_t size = head.size() + data.size();
  DEJA_RETURN_IF_ERROR(Begin(size));
  FrameHeader header;
  header.type = type;
  header.raw_size = static_cast<uint32_t>(size);
  header.stored_size = header.raw_size;
  header.payload_checksum = Checksum(head, data);
  std::array<std::byte, kFrameHeaderBytes + kMaxHeadBytes> first;
  const auto encoded = EncodeFrameHeader(header);
  std::copy(encoded.begin(), encoded.end(), first.begin());
  std::copy(head.begin(), head.end(), first.begin() + kFrameHeaderBytes);
  const uint64_t offset = file_->size();
  DEJA_RETURN_IF_ERROR(Append(std::span(first).first(kFrameHeaderBytes + head.size()), data));
  return offset;
}

Result<uint64_t> FrameWriter::Write(FrameType type, std::span<const std::byte> payload) {
  const bool compress = type != FrameType::kPayloadChunk && type != FrameType::kEnd &&
                        payload.size() <= kMaxFrameRawBytes;
  return WriteCompressed(type, payload,
                         compress ? zstd_.Compress(payload) : std::span<const std::byte>());
}

Result<uint64_t> FrameWriter::WriteCompressed(FrameType type, std::span<const std::byte> payload,
                                              std::span<const std::byte> compressed) {
  DEJA_RETURN_IF_ERROR(Begin(payload.size()));
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

Status FrameWriter::WriteIndex(const Index& index, Footer& footer) {
  ElementsOfIndex elements(index);
  return WriteIndex(index.batches, elements, footer);
}

// Index is repeated fields. Messages with some of the elements each are concatenated to one that
// holds all: a frame may end between any two elements.
Status FrameWriter::WriteIndex(const std::vector<BatchInfo>& batches, IndexElements& elements,
                               Footer& footer) {
  footer.index_offset = std::max<uint64_t>(file_->size(), kMagicBytes);
  footer.index_blocks.clear();
  footer.batch_directory = 0;
  std::vector<BatchBlock> directory;
  DEJA_RETURN_IF_ERROR(WriteBatchBlocks(batches, directory));
  DEJA_RETURN_IF_ERROR(WriteDirectory(directory, footer));
  return WriteIndexBlocks(elements, footer);
}

Status FrameWriter::WriteBatchBlocks(const std::vector<BatchInfo>& batches,
                                     std::vector<BatchBlock>& directory) {
  // A reader that wants one batch reads a block, and the whole directory.
  constexpr size_t kBlockBytes = 4 << 10;
  constexpr size_t kAboutMostBlocks = 1024;
  size_t bytes = 0;
  for (const BatchInfo& batch : batches) bytes += EncodedSize(batch);
  const size_t enough =
      std::clamp(bytes / kAboutMostBlocks, kBlockBytes, size_t{kMaxFrameRawBytes} / 4);
  std::string pending;
  BlockSummary block;
  for (size_t i = 0; i < batches.size(); ++i) {
    AppendElement(1, batches[i], pending);
    block.Add(batches[i]);
    if (pending.size() < enough && i + 1 < batches.size()) continue;
    DEJA_ASSIGN_OR_RETURN(const uint64_t offset, Write(FrameType::kIndex, AsBytes(pending)));
    directory.push_back(block.Take(offset));
    pending.clear();
  }
  return {};
}

Status FrameWriter::WriteDirectory(const std::vector<BatchBlock>& directory, Footer& footer) {
  constexpr size_t kEnough = kMaxFrameRawBytes / 4;
  std::string pending;
  for (size_t i = 0; i < directory.size(); ++i) {
    AppendElement(4, directory[i], pending);
    if (pending.size() < kEnough && i + 1 < directory.size()) continue;
    DEJA_ASSIGN_OR_RETURN(const uint64_t offset, Write(FrameType::kIndex, AsBytes(pending)));
    if (footer.batch_directory == 0) footer.batch_directory = offset;
    pending.clear();
  }
  return {};
}

Status FrameWriter::WriteIndexBlocks(IndexElements& elements, Footer& footer) {
  // Small, since a reader that wants one payload reads a block; not so small that the list of
  // blocks, which is read whole, becomes long.
  constexpr size_t kBlockBytes = 4 << 10;
  constexpr size_t kAboutBytesOfOne = 32;
  constexpr size_t kMostBlocks = 1 << 16;
  const size_t enough = std::clamp(elements.size() * kAboutBytesOfOne / kMostBlocks, kBlockBytes,
                                   size_t{kMaxFrameRawBytes} / 4);
  std::string pending;
  const auto flush = [&]() -> Status {
    DEJA_ASSIGN_OR_RETURN(footer.index_blocks.back().offset,
                          Write(FrameType::kIndex, AsBytes(pending)));
    pending.clear();
    return {};
  };
  for (IndexElement element = elements.Next(); !element.is_end(); element = elements.Next()) {
    if (pending.empty()) footer.index_blocks.push_back({0, element.hash()});
    if (element.payload != nullptr)
      AppendElement(2, *element.payload, pending);
    else
      AppendElement(3, *element.pieces, pending);
    if (pending.size() >= enough) DEJA_RETURN_IF_ERROR(flush());
  }
  return pending.empty() ? Status() : flush();
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
