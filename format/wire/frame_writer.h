// FrameWriter: magic and frames into an AppendFile.
//
// Owns the file. One thread at a time. After a failed write the file is cut back to its last whole
// frame where that is possible. Every later write fails at once with the first error. A writer that
// has lost a frame must not write what follows it as if nothing had happened.
#ifndef DEJA_FORMAT_WIRE_FRAME_WRITER_H_
#define DEJA_FORMAT_WIRE_FRAME_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"
#include "format/wire/frame_format.h"
#include "format/wire/index_elements.h"
#include "format/wire/messages.h"
#include "format/wire/zstd_codec.h"

namespace deja::format {

class FrameWriter {
 public:
  // Continues at the end of `file`; the magic is written first if the file is empty.
  explicit FrameWriter(std::unique_ptr<AppendFile> file, int zstd_level = 1);

  // Writes one frame and returns its offset. The payload is compressed where that makes it smaller
  // (types other than kPayloadChunk and kEnd).
  Result<uint64_t> Write(FrameType type, std::span<const std::byte> payload);

  // The same of a payload of which `compressed` is what zstd made; empty: nothing smaller.
  Result<uint64_t> WriteCompressed(FrameType type, std::span<const std::byte> payload,
                                   std::span<const std::byte> compressed);

  // A frame whose payload is `head` and `data`, stored as it is: large data is written from where
  // it lies. `head`: at most kMaxHeadBytes.
  static constexpr size_t kMaxHeadBytes = 128;
  Result<uint64_t> WriteInTwo(FrameType type, std::span<const std::byte> head,
                              std::span<const std::byte> data);

  // The header must be the file's first frame.
  Result<uint64_t> WriteHeader(const TraceHeader& header);
  // An index of any size, cut into frames that can be read one at a time. First come blocks of
  // batches and their directory, then, by their hashes, payloads and pieces. `footer` then says
  // where they are.
  Status WriteIndex(const Index& index, Footer& footer);
  Status WriteIndex(const std::vector<BatchInfo>& batches, IndexElements& elements, Footer& footer);
  // Footer and end frame: what makes a file finished. May be written again after older ones.
  Status WriteFooter(const Footer& footer);

  // Waits until the file is on the disk. A first failure stays.
  Status Sync();
  // Where the next frame will be.
  [[nodiscard]] uint64_t offset() const { return file_->size(); }
  // The first failure, if there was one.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  Status Begin(size_t payload_bytes);
  Status Append(std::span<const std::byte> first, std::span<const std::byte> second);
  Status WriteBatchBlocks(const std::vector<BatchInfo>& batches,
                          std::vector<BatchBlock>& directory);
  Status WriteDirectory(const std::vector<BatchBlock>& directory, Footer& footer);
  Status WriteIndexBlocks(IndexElements& elements, Footer& footer);

  std::unique_ptr<AppendFile> file_;
  ZstdCompressor zstd_;
  std::optional<Error> failure_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_FRAME_WRITER_H_
