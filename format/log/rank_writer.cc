#include "format/log/rank_writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <set>
#include <utility>

#include "format/layout/payload_segments.h"
#include "format/tensor/element_difference.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/frame_reader.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

// Room that is kept in each file: for the last batch, index frames and footer.
constexpr uint64_t kKeptRoom = 24 << 10;
constexpr uint64_t kIndexElementBytes = 8;    // around each of them
constexpr uint64_t kIndexPieceBytes = 64;     // of a piece, at most
constexpr size_t kLeastDifference = 1 << 10;  // bytes; the frame has an eighth of these
constexpr double kDifferencePays = 0.9;       // of the size without it
constexpr uint32_t kChunkDataField = 7;       // PayloadChunk.data

}  // namespace

void PartialPayload::Add(uint64_t offset, uint64_t size, uint64_t frame) {
  Piece& piece = pieces[offset];
  if (piece.frame == 0 || piece.size < size) piece = {size, frame};
}

std::pair<uint64_t, uint64_t> PartialPayload::Gap(uint64_t offset) const {
  auto piece = pieces.upper_bound(offset);
  if (piece != pieces.begin()) --piece;
  for (; piece != pieces.end() && piece->first <= offset; ++piece)
    offset = std::max(offset, piece->first + piece->second.size);
  const uint64_t end = piece == pieces.end() ? total_size : std::min(total_size, piece->first);
  return {offset, end - std::min(end, offset)};
}

bool PartialPayload::IsWhole() const {
  return !pieces.empty() && Gap(0).first >= total_size;
}

PayloadInfo PartialPayload::Info(const Hash128& hash) const {
  PayloadInfo info;
  info.hash = hash;
  info.total_size = total_size;
  uint64_t done = 0;
  for (const auto& [offset, piece] : pieces) {
    if (offset + piece.size <= done && offset != 0) continue;  // within another one
    info.chunk_offsets.push_back(piece.frame);
    done = offset + piece.size;
  }
  return info;
}

PayloadPieces PartialPayload::Pieces(const Hash128& hash) const {
  PayloadPieces list;
  list.hash = hash;
  list.total_size = total_size;
  for (const auto& [offset, piece] : pieces) {
    list.chunk_offsets.push_back(piece.frame);
    list.starts.push_back(offset);
    list.sizes.push_back(piece.size);
  }
  return list;
}

void SegmentFile::Note(uint64_t step, uint32_t segment) {
  const bool first = !has_chunks;
  has_chunks = true;
  reaches_back = std::max(reaches_back, facts.number - std::min(facts.number, segment));
  facts.first_step = first ? step : std::min(facts.first_step, step);
  facts.last_step = std::max(facts.last_step, step);
}

Result<std::unique_ptr<FrameWriter>> RankWriter::OpenFile(const char* name, FileStart start,
                                                          ProcessFile*& raw) {
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<ProcessFile> file,
                        OpenProcessFile(folder_ + "/" + name, start, options_.spare));
  raw = file.get();
  std::unique_ptr<AppendFile> wrapped = std::move(file);
  if (options_.wrap != nullptr) wrapped = options_.wrap(std::move(wrapped));
  return std::make_unique<FrameWriter>(std::move(wrapped));
}

Result<std::unique_ptr<RankWriter>> RankWriter::Create(const std::string& folder,
                                                       const RankWriterOptions& options) {
  if (mkdir(folder.c_str(), 0700) != 0) return FailErrno("making: " + folder, errno);
  std::unique_ptr<RankWriter> writer(new RankWriter(options));
  writer->folder_ = folder;
  auto events = writer->OpenFile(kEventsFile, FileStart::kCreate, writer->events_file_);
  if (events) {
    writer->events_ = std::move(*events);
    writer->segments_.emplace_back();
    auto payloads = writer->OpenFile(kPayloadsFile, FileStart::kCreate, writer->payloads_file_);
    if (payloads) {
      writer->payloads_ = std::move(*payloads);
      return writer;
    }
    events = tl::unexpected(std::move(payloads.error()));
  }
  unlink((folder + "/" + kEventsFile).c_str());
  unlink((folder + "/" + kPayloadsFile).c_str());
  rmdir(folder.c_str());
  return tl::unexpected(std::move(events.error()));
}

Result<std::unique_ptr<RankWriter>> RankWriter::Continue(const std::string& folder,
                                                         RankFiles files) {
  std::unique_ptr<RankWriter> writer(new RankWriter(RankWriterOptions{}));
  writer->folder_ = folder;
  writer->batches_ = std::move(files.batches);
  writer->segments_ = std::move(files.segments);
  writer->totals_ = files.totals;
  writer->header_ = std::move(files.header);
  for (SegmentFile& segment : writer->segments_) {
    const bool newest = &segment == &writer->segments_.back();
    const std::string path = folder + "/" + SegmentFileName(segment.facts.number);
    // One that its process did not finish.
    if (!newest && !segment.finished) {
      DEJA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, OpenAppendFile(path));
      if (file->size() > segment.end) DEJA_RETURN_IF_ERROR(file->Truncate(segment.end));
      FrameWriter frames(std::move(file));
      DEJA_RETURN_IF_ERROR(frames.WriteFooter(writer->SegmentFooter(segment)));
      segment.facts.bytes = frames.offset();
    }
  }
  if (writer->segments_.empty()) writer->segments_.emplace_back();
  DEJA_RETURN_IF_ERROR(writer->Retry());
  if (writer->events_file_->size() > files.events_end) {
    DEJA_RETURN_IF_ERROR(writer->events_file_->Truncate(files.events_end));
  }
  if (writer->payloads_file_->size() > writer->segments_.back().end) {
    DEJA_RETURN_IF_ERROR(writer->payloads_file_->Truncate(writer->segments_.back().end));
  }
  return writer;
}

Status RankWriter::MakeRoom(ProcessFile& file, uint64_t bytes) const {
  if (spend_reserve_) return {};
  const uint64_t index = &file == events_file_ ? index_bytes_ : 0;
  if (file.Reserve(bytes + kKeptRoom + index)) return {};
  return FailErrno("writing: " + folder_, ENOSPC);
}

void RankWriter::ReleaseReserve() {
  events_file_->ReleaseReserve();
  payloads_file_->ReleaseReserve();
}

Status RankWriter::Retry() {
  DEJA_ASSIGN_OR_RETURN(events_, OpenFile(kEventsFile, FileStart::kContinue, events_file_));
  const std::string name = SegmentFileName(segments_.back().facts.number);
  DEJA_ASSIGN_OR_RETURN(payloads_, OpenFile(name.c_str(), FileStart::kContinue, payloads_file_));
  return {};
}

void RankWriter::Renamed(const std::string& folder) {
  folder_ = folder;
  events_file_->Renamed(folder + "/" + kEventsFile);
  payloads_file_->Renamed(folder + "/" + SegmentFileName(segments_.back().facts.number));
}

void RankWriter::CloseInChild() {
  events_file_->CloseInChild();
  payloads_file_->CloseInChild();
}

// The header is known only when the process becomes a rank. A file that was begun before is copied
// frame by frame after it. `moved` receives where each frame was and is.
Status RankWriter::Rewrite(const char* name, const TraceHeader& header,
                           std::unique_ptr<FrameWriter>& writer, ProcessFile*& raw,
                           std::map<uint64_t, uint64_t>& moved) {
  if (writer->offset() == 0) {
    DEJA_ASSIGN_OR_RETURN([[maybe_unused]] const uint64_t offset, writer->WriteHeader(header));
    return {};
  }
  const std::string path = folder_ + "/" + name;
  const std::string next_name = std::string(name) + ".next";
  const std::string next_path = folder_ + "/" + next_name;
  unlink(next_path.c_str());
  ProcessFile* next_raw = nullptr;
  DEJA_ASSIGN_OR_RETURN(auto next, OpenFile(next_name.c_str(), FileStart::kCreate, next_raw));
  DEJA_ASSIGN_OR_RETURN([[maybe_unused]] const uint64_t offset, next->WriteHeader(header));
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<ReadFile> old, OpenReadFile(path));
  FrameReader reader(*old);
  DEJA_RETURN_IF_ERROR(reader.CheckMagic());
  std::vector<std::byte> payload;
  for (;;) {
    const FrameResult frame = reader.Next(payload);
    if (frame.outcome != FrameOutcome::kRecord) break;
    if (frame.type == FrameType::kHeader) continue;
    DEJA_ASSIGN_OR_RETURN(const uint64_t at, next->Write(frame.type, payload));
    moved[frame.offset] = at;
  }
  if (rename(next_path.c_str(), path.c_str()) != 0) {
    return FailErrno("renaming: " + next_path, errno);
  }
  next_raw->Renamed(path);
  writer = std::move(next);
  raw = next_raw;
  return {};
}

Status RankWriter::SetHeader(const TraceHeader& header) {
  const uint64_t header_bytes = EncodedSize(header);
  DEJA_RETURN_IF_ERROR(MakeRoom(*events_file_, header_bytes));
  DEJA_RETURN_IF_ERROR(MakeRoom(*payloads_file_, header_bytes));
  std::map<uint64_t, uint64_t> events_moved;
  std::map<uint64_t, uint64_t> payloads_moved;
  DEJA_RETURN_IF_ERROR(Rewrite(kEventsFile, header, events_, events_file_, events_moved));
  DEJA_RETURN_IF_ERROR(Rewrite(kPayloadsFile, header, payloads_, payloads_file_, payloads_moved));
  for (BatchInfo& batch : batches_) batch.offset = events_moved[batch.offset];
  for (PayloadInfo& info : segments_.front().whole) {
    for (uint64_t& offset : info.chunk_offsets) offset = payloads_moved[offset];
  }
  for (auto& [hash, partial] : segments_.front().partial) {
    for (auto& [offset, piece] : partial.pieces) piece.frame = payloads_moved[piece.frame];
  }
  header_ = EncodeToString(header);
  return {};
}

void RankWriter::AddEvent(std::span<const std::byte> encoded_event) {
  Event event;
  uint32_t body_field = 0;
  // What does not decode is kept all the same: the reader reports it.
  if (DecodeEvent(encoded_event, event, &body_field)) summary_.Add(event, body_field);
  AppendToBatch(encoded_event, batch_);
}

Status RankWriter::WriteBatch() {
  if (batch_.empty()) return {};
  const uint64_t count = summary_.events();
  Result<uint64_t> offset = uint64_t{0};
  if (const Status room = MakeRoom(*events_file_, batch_.size()); !room) {
    offset = tl::unexpected(room.error());
  } else {
    offset = events_->Write(FrameType::kEvents, AsBytes(batch_));
  }
  batch_.clear();
  if (!offset) {
    summary_.Take(0, 0);
    return tl::unexpected(offset.error());
  }
  BatchInfo info = summary_.Take(*offset, events_->offset() - *offset);
  Count(info, count);
  if (!info.comms.empty()) ++batches_with_ops_;
  index_bytes_ += EncodedSize(info) + kIndexElementBytes;
  batches_.push_back(std::move(info));
  return {};
}

void RankWriter::Count(const BatchInfo& batch, uint64_t events) {
  totals_.events += events;
  if (batch.steps.empty()) return;
  const auto [least, greatest] = std::minmax_element(batch.steps.begin(), batch.steps.end());
  totals_.first_step = totals_.steps == 0 ? *least : std::min(totals_.first_step, *least);
  totals_.last_step = std::max(totals_.last_step, *greatest);
  totals_.steps += batch.steps.size();
}

// False if it would not save enough for what reading it costs.
bool RankWriter::EncodeDifference(const PayloadPart& part, const PayloadBases::Base& base,
                                  PayloadChunk& chunk) {
  const DifferenceKind kind{DifferenceCodec(part.element_size), part.element_size};
  // A reader adds the differences of a chain up.
  if (base.element_size != part.element_size) return false;
  difference_.resize(part.bytes.size());
  MakeDifference(kind, part.bytes, base.bytes, difference_);
  const EncodedTensor encoded =
      EncodeTensor(difference_, part.element_size, scratch_, options_.effort);
  const auto size = static_cast<double>(encoded.bytes.size());
  if (encoded.codec != TensorCodec::kPlanes ||
      size > kDifferencePays * static_cast<double>(base.stored_size)) {
    return false;
  }
  chunk.codec = static_cast<uint32_t>(kind.codec);
  chunk.base = base.frame;
  chunk.data = AsText(encoded.bytes);
  return true;
}

Result<uint64_t> RankWriter::WriteChunk(const PayloadPart& part) {
  // Before the header is known, frames do not stay where they are.
  const bool may_differ = !header_.empty() && part.bytes.size() >= kLeastDifference;
  const PayloadBases::Place place{may_differ ? part.series : 0, part.offset, part.bytes.size(),
                                  part.step};
  const PayloadBases::Base* base = bases_.Find(place);
  PayloadBases::Base next;
  next.bytes = part.bytes;
  next.element_size = part.element_size;
  PayloadChunk chunk;
  chunk.hash = part.hash;
  chunk.total_size = part.total_size;
  chunk.offset = part.offset;
  chunk.size = part.bytes.size();
  chunk.element_size = part.element_size;
  chunk.step = part.step;
  using Tried = PayloadBases::Tried;
  Tried tried = Tried::kNo;
  if (base != nullptr && EncodeDifference(part, *base, chunk)) {
    tried = Tried::kSaved;
    next.differences = base->differences + 1;
    next.stored_size = base->stored_size;
  } else {
    if (base != nullptr) tried = Tried::kSavedNothing;
    const EncodedTensor encoded =
        EncodeTensor(part.bytes, part.element_size, scratch_, options_.effort);
    chunk.codec = static_cast<uint32_t>(encoded.codec);
    chunk.data = AsText(encoded.bytes);
    next.stored_size = encoded.bytes.size();
  }
  DEJA_ASSIGN_OR_RETURN(next.frame, AppendChunk(chunk));
  bases_.Remember(place, next, tried);
  return next.frame;
}

Result<uint64_t> RankWriter::AppendChunk(const PayloadChunk& chunk) {
  DEJA_RETURN_IF_ERROR(MakeRoom(*payloads_file_, EncodedSize(chunk)));
  // Fields may come in any order: with its bytes last a chunk is written from where they lie.
  PayloadChunk without_data = chunk;
  without_data.data = {};
  std::array<std::byte, FrameWriter::kMaxHeadBytes> head;
  WireWriter writer(head);
  EncodeTo(writer, without_data);
  writer.Tag(kChunkDataField, WireType::kBytes);
  writer.Varint(chunk.data.size());
  return payloads_->WriteInTwo(FrameType::kPayloadChunk,
                               std::span(std::as_const(head)).first(writer.size()),
                               AsBytes(chunk.data));
}

Result<bool> RankWriter::WritePayload(const PayloadPart& part) {
  SegmentFile& segment = segments_.back();
  Segment& facts = segment.facts;
  segment.Note(part.step, part.segment);
  PartialPayload& payload = segment.partial[part.hash];
  payload.total_size = part.total_size;
  // Threads that store the same bytes at the same time may cut them differently.
  const uint64_t end = part.offset + part.bytes.size();
  for (uint64_t at = part.offset; at < end || payload.pieces.empty();) {
    const auto [gap, length] = payload.Gap(at);
    if (gap >= end && !payload.pieces.empty()) break;
    PayloadPart chunk = part;
    chunk.offset = gap;
    chunk.bytes = part.bytes.subspan(gap - part.offset,
                                     std::min({length, end - gap, uint64_t{kPayloadChunkBytes}}));
    DEJA_ASSIGN_OR_RETURN(const uint64_t frame, WriteChunk(chunk));
    payload.Add(gap, chunk.bytes.size(), frame);
    at = gap + chunk.bytes.size();
  }
  if (!payload.IsWhole()) {
    CountIndex(segment, kIndexPieceBytes);
    return false;
  }
  ++facts.payloads;
  facts.payload_bytes += part.total_size;
  PayloadInfo info = payload.Info(part.hash);
  info.segment = facts.number;
  CountIndex(segment, EncodedSize(info) + kIndexElementBytes);
  segment.whole.push_back(std::move(info));
  segment.partial.erase(part.hash);
  return true;
}

// ---- Segments

uint64_t RankWriter::payload_file_bytes() const {
  uint64_t bytes = payloads_->offset();
  for (const SegmentFile& segment : segments_)
    if (&segment != &segments_.back()) bytes += segment.facts.bytes;
  return bytes;
}

Footer RankWriter::SegmentFooter(const SegmentFile& segment) const {
  Footer footer;
  footer.payloads = segment.facts.payloads;
  footer.payload_bytes = segment.facts.payload_bytes;
  return footer;
}

Status RankWriter::AdvanceTo(uint32_t number, uint64_t now_ns) {
  SegmentFile& newest = segments_.back();
  if (newest.has_chunks) return BeginSegment(number, now_ns);
  const std::string from = folder_ + "/" + SegmentFileName(newest.facts.number);
  const std::string to = folder_ + "/" + SegmentFileName(number);
  if (rename(from.c_str(), to.c_str()) != 0) return FailErrno("renaming: " + from, errno);
  payloads_file_->Renamed(to);
  newest.facts.number = number;
  return {};
}

Status RankWriter::BeginSegment(uint32_t number, uint64_t now_ns) {
  SegmentFile& newest = segments_.back();
  DEJA_RETURN_IF_ERROR(payloads_->WriteFooter(SegmentFooter(newest)));
  // Under another name until its header is in it: a segment is there whole or not at all.
  const std::string name = SegmentFileName(number);
  const std::string next_path = folder_ + "/" + name + ".next";
  unlink(next_path.c_str());
  ProcessFile* raw = nullptr;
  DEJA_ASSIGN_OR_RETURN(auto next, OpenFile((name + ".next").c_str(), FileStart::kCreate, raw));
  // options_.wrap keeps what it wraps, which the analyzer cannot know.
  Status begun = MakeRoom(*raw, header_.size());  // NOLINT(clang-analyzer-cplusplus.NewDelete)
  if (begun) {
    if (const auto written = next->Write(FrameType::kHeader, AsBytes(header_)); !written)
      begun = tl::unexpected<Error>(written.error());
  }
  if (begun && rename(next_path.c_str(), (folder_ + "/" + name).c_str()) != 0)
    begun = FailErrno("renaming: " + next_path, errno);
  if (!begun) {
    unlink(next_path.c_str());
    return begun;
  }
  raw->Renamed(folder_ + "/" + name);
  payloads_file_->ReleaseReserve();
  newest.facts.bytes = payloads_->offset();
  newest.finished = true;
  newest.ended_ns = now_ns;
  payloads_ = std::move(next);
  payloads_file_ = raw;
  bases_.Clear();
  segments_.emplace_back().facts.number = number;
  return {};
}

void RankWriter::MarkSegments(uint32_t first, uint32_t last) {
  for (SegmentFile& segment : segments_)
    if (first <= segment.facts.number && segment.facts.number <= last) segment.facts.marked = 1;
}

SegmentRange RankWriter::RangeOf(uint32_t number) const {
  SegmentRange range{0, number};
  for (const SegmentFile& segment : segments_)
    if (segment.facts.number < number) range.first = segment.facts.number + 1;
  return range;
}

WindowChange RankWriter::Dropping(const SegmentFile& segment, std::string_view reason) const {
  const SegmentRange range = RangeOf(segment.facts.number);
  WindowChange change;
  change.what = static_cast<uint32_t>(WindowEvent::kDropped);
  change.first_segment = range.first;
  change.last_segment = range.last;
  change.reason = reason;
  change.payloads = segment.facts.payloads;
  change.payload_bytes = segment.facts.payload_bytes;
  return change;
}

void RankWriter::DropSegment(uint32_t number) {
  const auto segment =
      std::find_if(segments_.begin(), segments_.end(),
                   [&](const SegmentFile& file) { return file.facts.number == number; });
  if (segment == segments_.end() || segment + 1 == segments_.end()) return;
  AddRange(totals_.dropped, RangeOf(number));
  totals_.payloads_dropped += segment->facts.payloads;
  totals_.payload_bytes_dropped += segment->facts.payload_bytes;
  index_bytes_ -= segment->index_bytes;
  unlink((folder_ + "/" + SegmentFileName(number)).c_str());
  segments_.erase(segment);
}

void RankWriter::LackSegment(uint32_t number) {
  AddRange(totals_.dropped, {number, number});
}

// The same payload may be in several segments: the newest is named. All pieces are named if it is
// whole in none.
void RankWriter::IndexSegments(Index& index, Footer& footer) const {
  std::vector<PayloadInfo>& payloads = index.payloads;
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment)
    payloads.insert(payloads.end(), segment->whole.begin(), segment->whole.end());
  std::stable_sort(payloads.begin(), payloads.end(),
                   [](const PayloadInfo& a, const PayloadInfo& b) { return a.hash < b.hash; });
  payloads.erase(
      std::unique(payloads.begin(), payloads.end(),
                  [](const PayloadInfo& a, const PayloadInfo& b) { return a.hash == b.hash; }),
      payloads.end());
  footer.payloads = payloads.size();
  footer.payload_bytes = 0;
  for (const PayloadInfo& info : payloads) footer.payload_bytes += info.total_size;
  std::set<Hash128> in_part;
  for (const SegmentFile& segment : segments_) {
    for (const auto& [hash, payload] : segment.partial) {
      // The rest of one that another thread has made whole.
      const auto whole =
          std::lower_bound(payloads.begin(), payloads.end(), hash,
                           [](const PayloadInfo& a, const Hash128& b) { return a.hash < b; });
      if (whole != payloads.end() && whole->hash == hash) continue;
      index.pieces.push_back(payload.Pieces(hash));
      index.pieces.back().segment = segment.facts.number;
      for (const uint64_t size : index.pieces.back().sizes) footer.partial_payload_bytes += size;
      in_part.insert(hash);
    }
  }
  footer.partial_payloads = in_part.size();
}

void RankWriter::Know(const Hash128& hash, uint64_t total_size, uint64_t offset, uint64_t size,
                      uint64_t frame) {
  PartialPayload& payload = segments_.back().partial[hash];
  payload.total_size = total_size;
  payload.Add(offset, size, frame);
}

Status RankWriter::Finish(Footer footer, IndexElements* listing) {
  DEJA_RETURN_IF_ERROR(WriteBatch());
  footer.events = totals_.events;
  footer.first_step = totals_.first_step;
  footer.last_step = totals_.last_step;
  footer.steps = totals_.steps;
  footer.dropped = totals_.dropped;
  footer.payloads_dropped = totals_.payloads_dropped;
  footer.payload_bytes_dropped = totals_.payload_bytes_dropped;
  Index index;
  if (listing == nullptr) IndexSegments(index, footer);
  footer.index_blocks.clear();
  footer.batch_directory = 0;
  Footer of_payloads = footer;
  footer.index_offset = 0;
  DEJA_RETURN_IF_ERROR(payloads_->WriteFooter(of_payloads));
  segments_.back().facts.bytes = payloads_->offset();
  if (segments_.size() > 1 || segments_.back().facts.number != 0) {
    for (const SegmentFile& segment : segments_) footer.segments.push_back(segment.facts);
  }
  if (listing != nullptr) {
    DEJA_RETURN_IF_ERROR(events_->WriteIndex(batches_, *listing, footer));
  } else {
    index.batches = batches_;
    DEJA_RETURN_IF_ERROR(events_->WriteIndex(index, footer));
  }
  return events_->WriteFooter(footer);
}

}  // namespace deja::format
