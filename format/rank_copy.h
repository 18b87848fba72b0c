// The parts of a copy of a rank's files: events in batches anew, payloads decoded, checked and
// encoded anew.
//
// Borrow reader and writer. One thread. Memory: a batch, two chunks.
#ifndef DEJA_FORMAT_RANK_COPY_H_
#define DEJA_FORMAT_RANK_COPY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/frame_writer.h"
#include "format/messages.h"
#include "format/rank_reader.h"
#include "format/tensor_codec.h"
#include "format/zstd_codec.h"

namespace deja::format {

// Creates `path`, which must not exist, with the header in it.
Result<std::unique_ptr<FrameWriter>> StartCopy(const std::string& path, const TraceHeader& header,
                                               int zstd_level);

// Copies all events of `reader`, in batches of `batch_bytes`, adds these to `batches` and returns
// how many events there are. `done` hears of the bytes of each batch that was read.
struct EventCopyOptions {
  size_t batch_bytes = 256 << 10;
  bool drop_digests = false;  // hashes and statistics of tensors, as at level order
  std::function<void(uint64_t)> done = {};
};
Result<uint64_t> CopyEvents(const RankReader& reader, FrameWriter& out,
                            std::vector<BatchInfo>& batches, const EventCopyOptions& options);

class PayloadCopier {
 public:
  // `zstd_level`: tried on chunks as a whole, too, where it may make them smaller than byte planes
  // are; 0: not.
  PayloadCopier(const RankReader& reader, FrameWriter& out, int zstd_level = 0);

  // Writes a whole payload and returns what an index says about it. Nothing if it cannot be read:
  // chunks that were written by then are in the file and in no index. Errors are of writing.
  Result<std::optional<PayloadInfo>> Copy(const Hash128& hash, uint64_t total_size);
  // Writes what the folder of `reader` itself has of a payload that other ranks have the rest of.
  Result<PayloadPieces> CopyPieces(const Hash128& hash);

 private:
  // Writes the bytes at `offset` as one chunk and returns its place in the file.
  Result<uint64_t> WriteChunk(const PayloadChunk& about, std::span<const std::byte> bytes);

  // The chunk in whatever codec makes it smallest.
  EncodedTensor EncodeChunk(std::span<const std::byte> bytes, uint32_t element_size);

  const RankReader& reader_;
  FrameWriter& out_;
  std::optional<ZstdCompressor> zstd_;
  std::vector<std::byte> pending_;
  std::vector<std::byte> scratch_;
  std::string frame_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_RANK_COPY_H_
