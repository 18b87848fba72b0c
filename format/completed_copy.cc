// CopyCompleted: a rank's files as they would be if it had finished, for a bundle.
#include <string>
#include <unordered_map>
#include <utility>

#include "format/batch_info.h"
#include "format/bundle.h"
#include "format/file.h"
#include "format/frame_format.h"
#include "format/frame_writer.h"
#include "format/message_codec.h"
#include "format/payload_table.h"
#include "format/rank_reader.h"
#include "format/tensor_codec.h"

namespace deja::format {
namespace {

constexpr size_t kBatchBytes = 256 << 10;

Result<std::unique_ptr<FrameWriter>> StartFile(const std::string& path, const TraceHeader& header) {
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, CreateAppendFile(path));
  auto writer = std::make_unique<FrameWriter>(std::move(file));
  DEJA_RETURN_IF_ERROR(writer->WriteHeader(header));
  return writer;
}

// Writes all complete payloads and fills their part of the index.
Status CopyPayloads(const RankReader& reader, FrameWriter& out, Index& index, Footer& footer) {
  std::vector<std::byte> scratch;
  std::string frame;
  for (const PayloadInfo& payload : reader.payloads()) {
    PayloadInfo copy;
    copy.hash = payload.hash;
    copy.total_size = payload.total_size;
    std::vector<std::byte> pending;
    uint64_t done = 0;
    Status written;
    const auto flush = [&] {
      if (!written) return;
      PayloadChunk chunk;
      chunk.hash = payload.hash;
      chunk.total_size = payload.total_size;
      chunk.offset = done;
      chunk.size = pending.size();
      // What the elements were is not known here; what was encoded by planes shrinks by bytes, too.
      chunk.element_size = 4;
      const EncodedTensor encoded = EncodeTensor(pending, chunk.element_size, scratch);
      chunk.codec = static_cast<uint32_t>(encoded.codec);
      chunk.data = AsText(encoded.bytes);
      frame.clear();
      AppendEncoded(chunk, frame);
      const Result<uint64_t> at = out.Write(FrameType::kPayloadChunk, AsBytes(frame));
      if (!at) {
        written = tl::unexpected<Error>(at.error());
        return;
      }
      copy.chunk_offsets.push_back(*at);
      done += pending.size();
      pending.clear();
    };
    const Status streamed =
        reader.StreamPayload(payload.hash, [&](std::span<const std::byte> bytes) {
          while (!bytes.empty()) {
            const size_t some = std::min(bytes.size(), kPayloadChunkBytes - pending.size());
            pending.insert(pending.end(), bytes.begin(),
                           bytes.begin() + static_cast<ptrdiff_t>(some));
            bytes = bytes.subspan(some);
            if (pending.size() == kPayloadChunkBytes) flush();
          }
        });
    if (streamed && (!pending.empty() || payload.total_size == 0)) flush();
    DEJA_RETURN_IF_ERROR(written);
    // A payload that cannot be read stays out; its chunks are there without a place in the index.
    if (!streamed) continue;
    ++footer.payloads;
    footer.payload_bytes += payload.total_size;
    index.payloads.push_back(std::move(copy));
  }
  return {};
}

// Writes what is here of payloads that other ranks have the rest of.
Status CopyPieces(const RankReader& reader, FrameWriter& out, Index& index, Footer& footer) {
  std::vector<std::byte> scratch;
  std::string frame;
  for (const Hash128& hash : reader.own_payloads().Partial()) {
    PayloadPieces copy;
    copy.hash = hash;
    Status written;
    const Status read = reader.own_payloads().ReadPieces(
        hash, [&](uint64_t total_size, uint64_t offset, std::span<const std::byte> bytes) {
          if (!written) return;
          copy.total_size = total_size;
          PayloadChunk chunk;
          chunk.hash = hash;
          chunk.total_size = total_size;
          chunk.offset = offset;
          chunk.size = bytes.size();
          chunk.element_size = 4;
          const EncodedTensor encoded = EncodeTensor(bytes, chunk.element_size, scratch);
          chunk.codec = static_cast<uint32_t>(encoded.codec);
          chunk.data = AsText(encoded.bytes);
          frame.clear();
          AppendEncoded(chunk, frame);
          const Result<uint64_t> at = out.Write(FrameType::kPayloadChunk, AsBytes(frame));
          if (!at) {
            written = tl::unexpected<Error>(at.error());
            return;
          }
          copy.chunk_offsets.push_back(*at);
          copy.starts.push_back(offset);
          copy.sizes.push_back(bytes.size());
          footer.partial_payload_bytes += bytes.size();
        });
    DEJA_RETURN_IF_ERROR(written);
    if (copy.chunk_offsets.empty()) continue;
    (void)read;  // what cannot be read stays out
    ++footer.partial_payloads;
    index.pieces.push_back(std::move(copy));
  }
  return {};
}

}  // namespace

Status CopyCompleted(const std::string& folder, const std::string& out) {
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<RankReader> reader, RankReader::Open(folder));
  Footer footer = reader->totals();
  footer.payloads = 0;
  footer.payload_bytes = 0;
  footer.partial_payloads = 0;
  footer.partial_payload_bytes = 0;
  footer.swept = 1;
  footer.segments.clear();  // one file has them all
  Index index;
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<FrameWriter> payloads,
                        StartFile(out + "/" + kPayloadsFile, reader->header()));
  DEJA_RETURN_IF_ERROR(CopyPayloads(*reader, *payloads, index, footer));
  if (!reader->header().shares_with.empty()) {
    DEJA_RETURN_IF_ERROR(CopyPieces(*reader, *payloads, index, footer));
  }
  DEJA_RETURN_IF_ERROR(payloads->WriteFooter(footer));

  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<FrameWriter> events,
                        StartFile(out + "/" + kEventsFile, reader->header()));
  std::string batch;
  BatchSummary summary;
  const auto flush = [&]() -> Status {
    if (batch.empty()) return {};
    DEJA_ASSIGN_OR_RETURN(const uint64_t at, events->Write(FrameType::kEvents, AsBytes(batch)));
    index.batches.push_back(summary.Take(at, events->offset() - at));
    batch.clear();
    return {};
  };
  const std::unique_ptr<EventCursor> cursor = reader->Events();
  footer.events = 0;
  Event event;
  while (cursor->Next() != nullptr) {
    uint32_t body_field = 0;
    if (!DecodeEvent(cursor->encoded(), event, &body_field)) continue;
    AppendToBatch(cursor->encoded(), batch);
    summary.Add(event, body_field);
    ++footer.events;
    if (batch.size() >= kBatchBytes) DEJA_RETURN_IF_ERROR(flush());
  }
  DEJA_RETURN_IF_ERROR(flush());
  DEJA_ASSIGN_OR_RETURN(footer.index_offset, events->WriteIndex(index));
  return events->WriteFooter(footer);
}

}  // namespace deja::format
