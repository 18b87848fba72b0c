#include "format/rank_copy.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "format/batch_info.h"
#include "format/message_codec.h"
#include "format/payload_table.h"
#include "format/tensor_codec.h"

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

}  // namespace

Result<std::unique_ptr<FrameWriter>> StartCopy(const std::string& path, const TraceHeader& header,
                                               int zstd_level) {
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, CreateAppendFile(path));
  auto writer = std::make_unique<FrameWriter>(std::move(file), zstd_level);
  DEJA_RETURN_IF_ERROR(writer->WriteHeader(header));
  return writer;
}

Result<uint64_t> CopyEvents(const RankReader& reader, FrameWriter& out,
                            std::vector<BatchInfo>& batches, const EventCopyOptions& options) {
  std::string batch;
  std::string rewritten;
  BatchSummary summary;
  uint64_t events = 0;
  const auto flush = [&]() -> Status {
    if (batch.empty()) return {};
    DEJA_ASSIGN_OR_RETURN(const uint64_t at, out.Write(FrameType::kEvents, AsBytes(batch)));
    batches.push_back(summary.Take(at, out.offset() - at));
    batch.clear();
    return {};
  };
  const std::unique_ptr<EventCursor> cursor = reader.Events();
  size_t read = 0;
  Event event;
  while (cursor->Next() != nullptr) {
    uint32_t body_field = 0;
    if (!DecodeEvent(cursor->encoded(), event, &body_field)) continue;
    summary.Add(event, body_field);
    const bool changed = options.drop_digests && DropDigests(event, rewritten);
    AppendToBatch(changed ? AsBytes(rewritten) : cursor->encoded(), batch);
    ++events;
    if (batch.size() >= options.batch_bytes) DEJA_RETURN_IF_ERROR(flush());
    for (; options.done && read < cursor->batch_number(); ++read)
      options.done(reader.batches()[read].size);
  }
  DEJA_RETURN_IF_ERROR(flush());
  for (; options.done && read < reader.batches().size(); ++read)
    options.done(reader.batches()[read].size);
  return events;
}

PayloadCopier::PayloadCopier(const RankReader& reader, FrameWriter& out, int zstd_level)
    : reader_(reader), out_(out) {
  if (zstd_level > 0) zstd_.emplace(zstd_level);
}

EncodedTensor PayloadCopier::EncodeChunk(std::span<const std::byte> bytes, uint32_t element_size) {
  const EncodedTensor planes = EncodeTensor(bytes, element_size, scratch_);
  if (!zstd_ || bytes.empty()) return planes;
  // A part of a large chunk says whether the whole is worth the time: numbers mostly are not.
  if (bytes.size() > 2 * kProbeBytes) {
    const size_t probe = zstd_->Compress(bytes.first(kProbeBytes)).size();
    const bool hopeless = probe == 0 || static_cast<double>(probe) * kProbeSlack >
                                            static_cast<double>(planes.bytes.size()) /
                                                static_cast<double>(bytes.size()) * kProbeBytes;
    if (hopeless) return planes;
  }
  const std::span<const std::byte> whole = zstd_->Compress(bytes);
  if (whole.empty() || whole.size() >= planes.bytes.size()) return planes;
  return {TensorCodec::kZstd, whole};
}

Result<uint64_t> PayloadCopier::WriteChunk(const PayloadChunk& about,
                                           std::span<const std::byte> bytes) {
  PayloadChunk chunk = about;
  const EncodedTensor encoded = EncodeChunk(bytes, chunk.element_size);
  chunk.size = bytes.size();
  chunk.codec = static_cast<uint32_t>(encoded.codec);
  chunk.data = AsText(encoded.bytes);
  frame_.clear();
  AppendEncoded(chunk, frame_);
  return out_.Write(FrameType::kPayloadChunk, AsBytes(frame_));
}

Result<std::optional<PayloadInfo>> PayloadCopier::Copy(const Hash128& hash, uint64_t total_size) {
  PayloadInfo info;
  info.hash = hash;
  info.total_size = total_size;
  PayloadChunk chunk;
  chunk.hash = hash;
  chunk.total_size = total_size;
  chunk.element_size = reader_.PayloadElementSize(hash);
  pending_.clear();
  Status written;
  const auto flush = [&] {
    if (!written) return;
    const Result<uint64_t> at = WriteChunk(chunk, pending_);
    if (!at) {
      written = tl::unexpected<Error>(at.error());
      return;
    }
    info.chunk_offsets.push_back(*at);
    chunk.offset += pending_.size();
    pending_.clear();
  };
  const Status streamed = reader_.StreamPayload(hash, [&](std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t some = std::min(bytes.size(), kPayloadChunkBytes - pending_.size());
      pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(some));
      bytes = bytes.subspan(some);
      if (pending_.size() == kPayloadChunkBytes) flush();
    }
  });
  if (streamed && (!pending_.empty() || total_size == 0)) flush();
  DEJA_RETURN_IF_ERROR(written);
  if (!streamed) return std::optional<PayloadInfo>();
  return std::optional<PayloadInfo>(std::move(info));
}

Result<PayloadPieces> PayloadCopier::CopyPieces(const Hash128& hash) {
  PayloadPieces copy;
  copy.hash = hash;
  PayloadChunk chunk;
  chunk.hash = hash;
  chunk.element_size = reader_.own_payloads().ElementSize(hash).value_or(1);
  Status written;
  const Status read = reader_.own_payloads().ReadPieces(
      hash, [&](uint64_t total_size, uint64_t offset, std::span<const std::byte> bytes) {
        if (!written) return;
        chunk.total_size = copy.total_size = total_size;
        chunk.offset = offset;
        const Result<uint64_t> at = WriteChunk(chunk, bytes);
        if (!at) {
          written = tl::unexpected<Error>(at.error());
          return;
        }
        copy.chunk_offsets.push_back(*at);
        copy.starts.push_back(offset);
        copy.sizes.push_back(bytes.size());
      });
  (void)read;  // what cannot be read stays out
  DEJA_RETURN_IF_ERROR(written);
  return copy;
}

}  // namespace deja::format
