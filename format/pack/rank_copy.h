// The parts of a copy of a rank's files: events in new batches, payloads decoded, checked and
// encoded again, on all processors.
//
// Borrow reader, writer and OrderedWork. One thread calls. Memory: for each job that is under way a
// batch or two chunks.
#ifndef DEJA_FORMAT_PACK_RANK_COPY_H_
#define DEJA_FORMAT_PACK_RANK_COPY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/pack/ordered_work.h"
#include "format/pack/trace_rewriter.h"
#include "format/reader/rank_reader.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/frame_writer.h"
#include "format/wire/messages.h"
#include "format/wire/zstd_codec.h"

namespace deja::format {

// Creates `path`, which must not exist, with the header in it.
Result<std::unique_ptr<FrameWriter>> StartCopy(const std::string& path, const TraceHeader& header,
                                               int zstd_level);

// Copies all events of `reader`, in batches of `batch_bytes`, adds these to `batches` and returns
// how many events there are. `done` hears of the bytes of each batch that was read.
struct EventCopyOptions {
  size_t batch_bytes = 256 << 10;
  int zstd_level = 1;
  bool drop_digests = false;          // hashes and statistics of tensors, as at level order
  TraceRewriter* rewriter = nullptr;  // borrowed; of events
  std::function<void(uint64_t)> done = {};
};
// Copies the events of `reader` to `out` on the threads of `work`, and adds their batches to
// `batches`. Returns the number of events. Errors are of writing.
Result<uint64_t> CopyEvents(const RankReader& reader, FrameWriter& out,
                            std::vector<BatchInfo>& batches, const EventCopyOptions& options,
                            OrderedWork& work);

// Copies payloads on the threads of `work`. Borrows everything that it is made of; one thread calls
// it.
class PayloadCopier {
 public:
  // `zstd_level`: tried on chunks as a whole, too, where it may make them smaller than byte planes
  // are; 0: not.
  PayloadCopier(const RankReader& reader, FrameWriter& out, OrderedWork& work, int zstd_level = 0);

  // Writes a whole payload. `done` hears what an index says about it, when it is in the file: by
  // the end of work.Finish(). If it cannot be read, `done` hears nothing: chunks that were written
  // by then are in the file and in no index. Errors are of writing.
  Status Copy(const Hash128& hash, uint64_t total_size,
              const std::function<void(PayloadInfo)>& done);
  // Writes a payload that the recording did not have. The same for `done`.
  Status Write(const Hash128& hash, std::span<const std::byte> bytes, uint32_t element_size,
               const std::function<void(PayloadInfo)>& done);
  // Writes what the folder of `reader` itself has of a payload that other ranks have the rest of.
  // The same for `done`, if there is something.
  Status CopyPieces(const Hash128& hash, const std::function<void(PayloadPieces)>& done);

 private:
  // What a thread keeps for the next chunk.
  struct Worker {
    std::optional<ZstdCompressor> zstd;
    std::vector<std::byte> scratch;
  };

  // Has `bytes` written as one chunk; `written` hears where.
  Status WriteChunk(const PayloadChunk& about, std::vector<std::byte> bytes,
                    std::function<void(uint64_t)> written);
  // The chunk in whatever codec makes it smallest.
  EncodedTensor EncodeChunk(Worker& worker, std::span<const std::byte> bytes,
                            uint32_t element_size) const;

  const RankReader& reader_;
  FrameWriter& out_;
  OrderedWork& work_;
  const int zstd_level_;
  std::vector<Worker> workers_;
  const OrderedWork::Scope scope_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PACK_RANK_COPY_H_
