#include "format/pack/finalized_copy.h"

#include <string>
#include <utility>

#include "format/pack/ordered_work.h"
#include "format/pack/rank_copy.h"
#include "format/payloads/payload_table.h"
#include "format/reader/rank_reader.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_writer.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

// Writes all complete payloads and fills their part of the index.
Status CopyPayloads(const RankReader& reader, FrameWriter& out, OrderedWork& work, Index& index,
                    Footer& footer) {
  PayloadCopier copier(reader, out, work);
  const auto done = [&](PayloadInfo copy) {
    ++footer.payloads;
    footer.payload_bytes += copy.total_size;
    index.payloads.push_back(std::move(copy));
  };
  for (const PayloadInfo& payload : reader.payloads())
    DEJA_RETURN_IF_ERROR(copier.Copy(payload.hash, payload.total_size, done));
  return work.Finish();
}

// Writes what is here of payloads that other ranks have the rest of.
Status CopyPieces(const RankReader& reader, FrameWriter& out, OrderedWork& work, Index& index,
                  Footer& footer) {
  PayloadCopier copier(reader, out, work);
  const auto done = [&](PayloadPieces copy) {
    ++footer.partial_payloads;
    for (const uint64_t size : copy.sizes) footer.partial_payload_bytes += size;
    index.pieces.push_back(std::move(copy));
  };
  for (const Hash128& hash : reader.own_payloads().Partial())
    DEJA_RETURN_IF_ERROR(copier.CopyPieces(hash, done));
  return work.Finish();
}

}  // namespace

Status WriteFinalizedCopy(const std::string& folder, const std::string& out,
                          const CopiedHeader& changes) {
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<RankReader> reader, RankReader::Open(folder));
  TraceHeader header = reader->header();
  if (!changes.job_id.empty()) header.job_id = changes.job_id;
  header.start_wall_ns -= static_cast<uint64_t>(changes.clock_ahead_ns);
  Footer footer = reader->totals();
  footer.payloads = 0;
  footer.payload_bytes = 0;
  footer.partial_payloads = 0;
  footer.partial_payload_bytes = 0;
  footer.predicted = {};
  if (reader->end().state != EndState::kCleanEnd) footer.swept = 1;
  footer.segments.clear();  // one file has them all
  footer.index_offset = 0;
  footer.index_blocks.clear();
  footer.batch_directory = 0;
  Index index;
  OrderedWork work;
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<FrameWriter> payloads,
                        StartCopy(out + "/" + kPayloadsFile, header, 1));
  DEJA_RETURN_IF_ERROR(CopyPayloads(*reader, *payloads, work, index, footer));
  if (!reader->header().shares_with.empty()) {
    DEJA_RETURN_IF_ERROR(CopyPieces(*reader, *payloads, work, index, footer));
  }
  DEJA_RETURN_IF_ERROR(payloads->WriteFooter(footer));

  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<FrameWriter> events,
                        StartCopy(out + "/" + kEventsFile, header, 1));
  DEJA_ASSIGN_OR_RETURN(footer.events, CopyEvents(*reader, *events, index.batches, {}, work));
  DEJA_RETURN_IF_ERROR(events->WriteIndex(index, footer));
  if (const LeftOut& left_out = reader->left_out(); left_out.payloads != 0) {
    const LeftOutMessage message{left_out.payloads, left_out.payload_bytes, left_out.what};
    DEJA_RETURN_IF_ERROR(events->Write(FrameType::kLeftOut, AsBytes(EncodeToString(message))));
  }
  return events->WriteFooter(footer);
}

}  // namespace deja::format
