#include "format/pack/rank_copy.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "format/payloads/payload_table.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/batch_info.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

constexpr size_t kProbeBytes = 64 << 10;
constexpr double kProbeSlack = 0.8;  // what follows the probe may compress so much better

void DropDigest(Tensor& tensor) {
  tensor.hash = Hash128{};
  tensor.stats = TensorStats{};
  tensor.payload = static_cast<uint32_t>(PayloadState::kNotKept);
}

bool DropTensors(CallEnter& enter) {
  for (Tensor& tensor : enter.inputs) DropDigest(tensor);
  return !enter.inputs.empty();
}
bool DropTensors(CallResults& results) {
  for (Tensor& tensor : results.outputs) DropDigest(tensor);
  return !results.outputs.empty();
}
bool DropTensors(Snapshot& snapshot) {
  DropDigest(snapshot.tensor);
  return true;
}

// The event without digests of tensors; false if it has none.
bool DropDigests(Event& event, std::string& encoded) {
  return std::visit(
      [&](auto& body) {
        if constexpr (requires { DropTensors(body); }) {
          if (!DropTensors(body)) return false;
          encoded = EncodeEventToString(event, body);
          return true;
        } else {
          return false;
        }
      },
      event.body);
}

std::string EncodeAnew(const Event& event) {
  return std::visit(
      [&](const auto& body) -> std::string {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(body)>, std::monostate>) {
          return {};
        } else {
          return EncodeEventToString(event, body);
        }
      },
      event.body);
}

}  // namespace

Result<std::unique_ptr<FrameWriter>> StartCopy(const std::string& path, const TraceHeader& header,
                                               int zstd_level) {
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, CreateAppendFile(path));
  auto writer = std::make_unique<FrameWriter>(std::move(file), zstd_level);
  DEJA_RETURN_IF_ERROR(writer->WriteHeader(header));
  return writer;
}

Result<uint64_t> CopyEvents(const RankReader& reader, FrameWriter& out,
                            std::vector<BatchInfo>& batches, const EventCopyOptions& options,
                            OrderedWork& work) {
  std::string batch;
  std::string rewritten;
  BatchSummary summary;
  uint64_t events = 0;
  std::vector<ZstdCompressor> compressors(work.workers());
  for (ZstdCompressor& zstd : compressors) zstd.SetLevel(options.zstd_level);
  const OrderedWork::Scope scope(work);
  const auto flush = [&]() -> Status {
    if (batch.empty()) return {};
    struct Frame {
      std::string raw;
      std::vector<std::byte> compressed;
      BatchInfo info;
    };
    const auto frame = std::make_shared<Frame>(Frame{std::move(batch), {}, summary.Take(0, 0)});
    batch.clear();
    return work.Give(
        {[frame, &compressors](size_t worker) {
           const auto bytes = compressors[worker].Compress(AsBytes(frame->raw));
           frame->compressed.assign(bytes.begin(), bytes.end());
         },
         [frame, &out, &batches]() -> Status {
           DEJA_ASSIGN_OR_RETURN(
               frame->info.offset,
               out.WriteCompressed(FrameType::kEvents, AsBytes(frame->raw), frame->compressed));
           frame->info.size = out.offset() - frame->info.offset;
           batches.push_back(std::move(frame->info));
           return {};
         }});
  };
  const std::unique_ptr<EventCursor> cursor = reader.Events();
  size_t read = 0;
  Event event;
  while (cursor->Next() != nullptr) {
    uint32_t body_field = 0;
    if (!DecodeEvent(cursor->encoded(), event, &body_field)) continue;
    summary.Add(event, body_field);
    bool changed = options.rewriter != nullptr;
    if (changed) {
      // Without what this version does not know, in which there may be anything.
      if (std::holds_alternative<std::monostate>(event.body)) continue;
      options.rewriter->Rewrite(event);
      rewritten = EncodeAnew(event);
    }
    changed = (options.drop_digests && DropDigests(event, rewritten)) || changed;
    AppendToBatch(changed ? AsBytes(rewritten) : cursor->encoded(), batch);
    ++events;
    if (batch.size() >= options.batch_bytes) DEJA_RETURN_IF_ERROR(flush());
    for (; options.done && read < cursor->batch_number(); ++read)
      options.done(reader.batches()[read].size);
  }
  DEJA_RETURN_IF_ERROR(flush());
  DEJA_RETURN_IF_ERROR(work.Finish());
  for (; options.done && read < reader.batches().size(); ++read)
    options.done(reader.batches()[read].size);
  return events;
}

PayloadCopier::PayloadCopier(const RankReader& reader, FrameWriter& out, OrderedWork& work,
                             int zstd_level)
    : reader_(reader),
      out_(out),
      work_(work),
      zstd_level_(zstd_level),
      workers_(work.workers()),
      scope_(work) {}

EncodedTensor PayloadCopier::EncodeChunk(Worker& worker, std::span<const std::byte> bytes,
                                         uint32_t element_size) const {
  const EncodedTensor planes = EncodeTensor(bytes, element_size, worker.scratch);
  if (zstd_level_ <= 0 || bytes.empty()) return planes;
  if (!worker.zstd) worker.zstd.emplace(zstd_level_);
  // A part of a large chunk says whether the whole is worth the time: numbers mostly are not.
  if (bytes.size() > 2 * kProbeBytes) {
    const size_t probe = worker.zstd->Compress(bytes.first(kProbeBytes)).size();
    const bool hopeless = probe == 0 || static_cast<double>(probe) * kProbeSlack >
                                            static_cast<double>(planes.bytes.size()) /
                                                static_cast<double>(bytes.size()) * kProbeBytes;
    if (hopeless) return planes;
  }
  const std::span<const std::byte> whole = worker.zstd->Compress(bytes);
  if (whole.empty() || whole.size() >= planes.bytes.size()) return planes;
  return {TensorCodec::kZstd, whole};
}

Status PayloadCopier::WriteChunk(const PayloadChunk& about, std::vector<std::byte> bytes,
                                 std::function<void(uint64_t)> written) {
  struct Task {
    PayloadChunk chunk;
    std::vector<std::byte> bytes;
    std::string frame;
    std::function<void(uint64_t)> written;
  };
  const auto task = std::make_shared<Task>(Task{about, std::move(bytes), {}, std::move(written)});
  return work_.Give({[task, this](size_t worker) {
                       PayloadChunk& chunk = task->chunk;
                       const EncodedTensor encoded =
                           EncodeChunk(workers_[worker], task->bytes, chunk.element_size);
                       chunk.size = task->bytes.size();
                       chunk.codec = static_cast<uint32_t>(encoded.codec);
                       chunk.data = AsText(encoded.bytes);
                       AppendEncoded(chunk, task->frame);
                       task->bytes = {};
                     },
                     [task, this]() -> Status {
                       DEJA_ASSIGN_OR_RETURN(const uint64_t at, out_.Write(FrameType::kPayloadChunk,
                                                                           AsBytes(task->frame)));
                       task->written(at);
                       return {};
                     }});
}

Status PayloadCopier::Copy(const Hash128& hash, uint64_t total_size,
                           const std::function<void(PayloadInfo)>& done) {
  const auto info = std::make_shared<PayloadInfo>();
  info->hash = hash;
  info->total_size = total_size;
  PayloadChunk chunk;
  chunk.hash = hash;
  chunk.total_size = total_size;
  chunk.element_size = reader_.PayloadElementSize(hash);
  std::vector<std::byte> pending;
  Status written;
  const auto flush = [&] {
    if (!written) return;
    const size_t size = pending.size();
    written = WriteChunk(chunk, std::exchange(pending, {}),
                         [info](uint64_t at) { info->chunk_offsets.push_back(at); });
    chunk.offset += size;
  };
  const Status streamed = reader_.StreamPayload(hash, [&](std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t some = std::min(bytes.size(), kPayloadChunkBytes - pending.size());
      pending.insert(pending.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(some));
      bytes = bytes.subspan(some);
      if (pending.size() == kPayloadChunkBytes) flush();
    }
  });
  if (streamed && (!pending.empty() || total_size == 0)) flush();
  DEJA_RETURN_IF_ERROR(written);
  if (!streamed) return {};
  return work_.Give({[](size_t) {},
                     [info, done]() -> Status {
                       done(std::move(*info));
                       return {};
                     }});
}

Status PayloadCopier::Write(const Hash128& hash, std::span<const std::byte> bytes,
                            uint32_t element_size, const std::function<void(PayloadInfo)>& done) {
  const auto info = std::make_shared<PayloadInfo>();
  info->hash = hash;
  info->total_size = bytes.size();
  PayloadChunk chunk;
  chunk.hash = hash;
  chunk.total_size = bytes.size();
  chunk.element_size = element_size;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<size_t>(bytes.size(), kPayloadChunkBytes));
    DEJA_RETURN_IF_ERROR(WriteChunk(chunk, {part.begin(), part.end()},
                                    [info](uint64_t at) { info->chunk_offsets.push_back(at); }));
    chunk.offset += part.size();
    bytes = bytes.subspan(part.size());
  }
  return work_.Give({[](size_t) {},
                     [info, done]() -> Status {
                       done(std::move(*info));
                       return {};
                     }});
}

Status PayloadCopier::CopyPieces(const Hash128& hash,
                                 const std::function<void(PayloadPieces)>& done) {
  const auto copy = std::make_shared<PayloadPieces>();
  copy->hash = hash;
  PayloadChunk chunk;
  chunk.hash = hash;
  chunk.element_size = reader_.own_payloads().ElementSize(hash).value_or(1);
  Status written;
  const Status read = reader_.own_payloads().ReadPieces(
      hash, [&](uint64_t total_size, uint64_t offset, std::span<const std::byte> bytes) {
        if (!written) return;
        chunk.total_size = copy->total_size = total_size;
        chunk.offset = offset;
        copy->starts.push_back(offset);
        copy->sizes.push_back(bytes.size());
        written = WriteChunk(chunk, {bytes.begin(), bytes.end()},
                             [copy](uint64_t at) { copy->chunk_offsets.push_back(at); });
      });
  (void)read;  // what cannot be read stays out
  DEJA_RETURN_IF_ERROR(written);
  if (copy->sizes.empty()) return {};
  return work_.Give({[](size_t) {},
                     [copy, done]() -> Status {
                       done(std::move(*copy));
                       return {};
                     }});
}

}  // namespace deja::format
