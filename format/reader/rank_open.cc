// How a rank's folder is opened: from its footer and index, or by scanning its files and its tail.
#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "common/os/shared_descriptor_file.h"
#include "format/layout/payload_segments.h"
#include "format/payloads/payload_scan.h"
#include "format/reader/rank_reader_impl.h"
#include "format/wire/format_version.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_reader.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

using Bytes = std::vector<std::byte>;

// How many of the tail's events came from rings; those from emergency slots follow them.
size_t RingEvents(const TailReader& tail) {
  return tail.events().size() - std::min(tail.events().size(), tail.emergency_events());
}

}  // namespace

Result<std::unique_ptr<ReadFile>> RankReaderImpl::OpenFile(const std::string& path) const {
  return share_descriptors_ ? OpenSharedDescriptorFile(path) : OpenReadFile(path);
}

Status RankReaderImpl::OpenFiles() {
  DEJA_ASSIGN_OR_RETURN(events_, OpenFile(folder_ + "/" + kEventsFile));
  payloads_.clear();
  for (const uint32_t segment : ListSegments(folder_)) {
    auto file = OpenFile(folder_ + "/" + SegmentFileName(segment));
    if (file) {
      payloads_[segment] = std::move(*file);
    } else if (file.error().code != ErrorCode::kNotFound) {  // its process may just drop it
      return tl::unexpected<Error>(std::move(file.error()));
    }
  }
  ClearTable();
  return {};
}

void RankReaderImpl::ClearTable() {
  table_ = PayloadTable();
  for (const auto& [segment, file] : payloads_) table_.AddFile(segment, file.get());
  table_.SetTail(tail_.get());
  table_.SpillBeyond(spill_beyond_, spill_folder_);
}

Status RankReaderImpl::LoadHeaderFrom(const ReadFile& file) {
  FrameReader reader(file);
  DEJA_RETURN_IF_ERROR(reader.CheckMagic());
  const FrameResult frame = reader.ReadAt(kMagicBytes, header_bytes_);
  if (frame.outcome == FrameOutcome::kTornTail) {
    return Fail(ErrorCode::kTruncated,
                "opening: " + file.name() + ": the file stops inside its header");
  }
  header_ = TraceHeader{};
  header_.format_major = 0;  // what a header says that does not say them
  header_.format_minor = 0;
  if (frame.outcome != FrameOutcome::kRecord || frame.type != FrameType::kHeader ||
      !Decode(header_bytes_, header_) || header_.format_major == 0) {
    return Fail(ErrorCode::kCorrupt,
                "opening: " + file.name() + ": the header cannot be read" +
                    (frame.reason.empty() ? std::string() : ": " + frame.reason));
  }
  if (header_.format_major > kFormatMajor) {
    return Fail(ErrorCode::kUnsupportedVersion,
                "opening: " + file.name() + ": format version " +
                    std::to_string(header_.format_major) + ", this Deja reads version " +
                    std::to_string(kFormatMajor) +
                    "; use the Deja that recorded it or a newer one");
  }
  return {};
}

// All files of a rank begin alike, and one of payloads has no events that could be missed.
Status RankReaderImpl::CheckKind() {
  FrameReader reader(*events_);
  Bytes payload;
  const FrameResult header = reader.ReadAt(kMagicBytes, payload);
  if (header.outcome != FrameOutcome::kRecord) return {};
  const FrameResult next = reader.ReadAt(kMagicBytes + header.size, payload);
  if (next.outcome == FrameOutcome::kRecord &&
      (next.type == FrameType::kPayloadChunk || next.type == FrameType::kPrediction))
    return Fail(ErrorCode::kCorrupt,
                "opening: " + events_->name() +
                    ": it holds payloads, so it is another file under this name");
  return {};
}

Status RankReaderImpl::LoadHeader() {
  DEJA_RETURN_IF_ERROR(CheckKind());
  Status loaded = LoadHeaderFrom(*events_);
  // Every file of a rank begins with the same header, so a damaged one can be replaced.
  const bool damaged = !loaded && (loaded.error().code == ErrorCode::kCorrupt ||
                                   loaded.error().code == ErrorCode::kTruncated);
  if (!damaged || payloads_.empty() || !LoadHeaderFrom(*payloads_.begin()->second)) return loaded;
  return {};
}

void RankReaderImpl::OpenTail() {
  const std::string path(header_.tail.path);
  if (path.empty() || header_.tail.id.size() != 16) return;
  Result<std::unique_ptr<TailReader>> tail = TailReader::Open(OpenFile(path), header_.tail.id);
  if (!tail) {
    end_.detail = tail.error().code == ErrorCode::kNotFound ? "the tail " + path + " does not exist"
                                                            : tail.error().message;
    return;
  }
  tail_ = std::move(*tail);
  table_.SetTail(tail_.get());
  const auto& events = tail_->events();
  Event event;
  for (size_t i = RingEvents(*tail_); i < events.size(); ++i) {
    if (DecodeEvent(events[i], event)) emergencies_.insert({event.thread, event.seq});
  }
}

Status RankReaderImpl::Load(const ReadOptions& options) {
  DEJA_RETURN_IF_ERROR(OpenFiles());
  DEJA_RETURN_IF_ERROR(LoadHeader());
  if (LoadIndexed()) return {};
  if (options.use_tail) {
    // The tail first, then the files again. What a live process takes out of the tail meanwhile is
    // then in the files, and what is in both is recognised.
    OpenTail();
    if (tail_ != nullptr) {
      DEJA_RETURN_IF_ERROR(OpenFiles());
      if (LoadIndexed()) {
        tail_ = nullptr;
        return {};
      }
    }
  }
  ScanPayloads();
  DEJA_RETURN_IF_ERROR(table_.EndChunks());
  ScanEvents();
  if (tail_ != nullptr) AddTail();
  if (totals_.segments.size() == 1 && totals_.segments.front().number == 0)
    totals_.segments.clear();
  const PayloadTable::Counts counts = table_.Count();
  totals_.payloads = counts.complete;
  totals_.payload_bytes = counts.complete_bytes;
  if (!header_.shares_with.empty()) {
    totals_.partial_payloads = counts.partial;
    totals_.partial_payload_bytes = counts.partial_bytes;
  }
  return {};
}

void RankReaderImpl::Note(EndState state, const ReadFile& file, const FrameResult& frame) {
  // Corruption is the worse news and stays.
  if (end_.state != EndState::kCorrupt) end_.state = state;
  end_.lost_bytes += frame.size;
  if (end_.detail.size() > 1000 || (frame.size == 0 && !end_.detail.empty())) return;
  if (!end_.detail.empty()) end_.detail += "; ";
  end_.detail += file.name() + ", offset " + std::to_string(frame.offset) + ": " + frame.reason;
}

// ---- A finished folder

bool RankReaderImpl::LoadIndexed() {
  const Result<uint64_t> footer_at = FindFooter(*events_);
  if (!footer_at) return false;
  FrameReader reader(*events_);
  Bytes payload;
  reader.ReadAt(*footer_at, payload);
  Footer footer;
  if (!Decode(payload, footer) || footer.index_offset > *footer_at) return false;
  const uint64_t index_at = footer.index_offset == 0 ? *footer_at : footer.index_offset;
  // A payload file that is cut or missing contradicts the index: see what is really there.
  if (!HasSegments(footer)) return false;
  if (!LoadWholeIndex(reader, footer, index_at, *footer_at)) {
    batches_ = BatchList();
    ClearTable();
    return false;
  }
  totals_ = footer;
  end_ = EndReport{};
  return true;
}

bool RankReaderImpl::HasSegments(const Footer& footer) const {
  const auto finished = [&](uint32_t number) {
    const auto file = payloads_.find(number);
    return file != payloads_.end() && FindFooter(*file->second).has_value();
  };
  if (footer.segments.empty()) {
    return footer.payloads + footer.partial_payloads == 0 || finished(0);
  }
  return std::all_of(footer.segments.begin(), footer.segments.end(),
                     [&](const Segment& segment) { return finished(segment.number); });
}

// What is in blocks is not read here, but when it is asked for.
bool RankReaderImpl::LoadWholeIndex(FrameReader& reader, const Footer& footer, uint64_t from,
                                    uint64_t to) {
  // An honest index has some bytes of file behind each of its elements. A larger one is not read:
  // the scan that replaces it costs memory for what is really there only.
  uint64_t stored = events_->stored_bytes();
  for (const auto& [segment, file] : payloads_) stored += file->stored_bytes();
  const size_t budget = (64 << 10) + static_cast<size_t>(stored / 2);
  if (footer.index_blocks.empty()) return LoadBatchesAndRest(reader, footer, from, to, budget);
  auto blocks = PayloadIndex::Make(*events_, footer.index_blocks, from, to, budget);
  const uint64_t blocks_end = blocks == nullptr ? 0 : blocks->End();
  if (blocks_end == 0 ||
      !LoadBatchesAndRest(reader, footer, from, footer.index_blocks[0].offset, budget) ||
      !LoadIndexFrames(reader, blocks_end, to, budget)) {
    return false;
  }
  table_.SetIndex(std::move(blocks));
  return true;
}

// Blocks of batches and their directory, or batches alone; and what else there is.
bool RankReaderImpl::LoadBatchesAndRest(FrameReader& reader, const Footer& footer, uint64_t from,
                                        uint64_t to, size_t budget) {
  const uint64_t directory = footer.batch_directory;
  if (directory == 0) return LoadIndexFrames(reader, from, to, budget);
  batch_blocks_.clear();
  return directory >= from && directory < to && LoadIndexFrames(reader, directory, to, budget) &&
         batches_.empty() &&
         batches_.SetBlocks(*events_, std::move(batch_blocks_), from, directory, budget);
}

bool RankReaderImpl::LoadIndexFrames(FrameReader& reader, uint64_t from, uint64_t to,
                                     size_t budget) {
  Bytes payload;
  while (from < to) {
    const FrameResult frame = reader.ReadAt(from, payload);
    if (frame.outcome != FrameOutcome::kRecord) return false;
    from += frame.size;
    if (frame.type == FrameType::kLeftOut) TakeLeftOut(payload);
    // A footer that was replaced by a later one, its end frame, types from the future.
    if (frame.type != FrameType::kIndex) continue;
    Index index;
    if (!DecodeWithin(payload, index, budget)) return false;
    if (!LoadIndex(index, to)) return false;
  }
  return from == to;
}

bool RankReaderImpl::LoadIndex(Index& index, uint64_t end) {
  for (const BatchInfo& batch : index.batches) {
    const uint64_t least =
        batches_.empty() ? kMagicBytes : batches_.back().offset + batches_.back().size;
    if (batch.offset < least || batch.size < kFrameHeaderBytes || batch.offset > end ||
        batch.size > end - batch.offset) {
      return false;
    }
    batches_.Add(batch);
  }
  std::move(index.batch_blocks.begin(), index.batch_blocks.end(),
            std::back_inserter(batch_blocks_));
  return table_.AddIndexed(index);
}

// ---- A folder without index

void RankReaderImpl::ScanPayloads() {
  for (const auto& [segment, file] : payloads_) ScanSegment(segment, *file);
}

void RankReaderImpl::ScanSegment(uint32_t segment, const ReadFile& file) {
  Segment facts;
  facts.number = segment;
  facts.bytes = file.size();
  PayloadScan scan;
  scan.chunk = [&](const PayloadChunk& chunk, uint64_t offset) {
    if (!table_.AddChunk(chunk, segment, offset)) return false;
    facts.first_step = facts.payloads == 0 ? chunk.step : std::min(facts.first_step, chunk.step);
    facts.last_step = std::max(facts.last_step, chunk.step);
    if (chunk.offset == 0) {
      ++facts.payloads;
      facts.payload_bytes += chunk.total_size;
    }
    return true;
  };
  scan.damage = [&](const FrameResult& frame) {
    Note(frame.outcome == FrameOutcome::kTornTail ? EndState::kTornTail : EndState::kCorrupt, file,
         frame);
  };
  if (ScanPayloadFile(file, scan)) totals_.segments.push_back(facts);
}

void RankReaderImpl::ScanEvents() {
  FrameReader reader(*events_);
  Bytes payload;
  for (;;) {
    const FrameResult frame = reader.Next(payload);
    switch (frame.outcome) {
      case FrameOutcome::kRecord:
        if (frame.type == FrameType::kEvents) ScanBatch(frame, payload);
        if (frame.type == FrameType::kLeftOut) TakeLeftOut(payload);
        if (frame.type == FrameType::kFooter) {
          // What only a footer knows; the rest is counted.
          Footer footer;
          if (Decode(payload, footer)) {
            NoteMissing(footer);
            totals_.fate = footer.fate;
            totals_.swept = footer.swept;
            totals_.oom_kills = footer.oom_kills;
            totals_.predicted = footer.predicted;
          }
        }
        continue;
      case FrameOutcome::kCorrupt:
        Note(EndState::kCorrupt, *events_, frame);
        continue;
      case FrameOutcome::kTornTail:
        Note(EndState::kTornTail, *events_, frame);
        return;
      case FrameOutcome::kCleanEnd:
        return;
    }
  }
}

void RankReaderImpl::NoteMissing(const Footer& footer) {
  std::vector<uint32_t> numbers;
  for (const Segment& segment : footer.segments) numbers.push_back(segment.number);
  if (numbers.empty() && footer.payloads > 0) numbers.push_back(0);
  for (const uint32_t number : numbers) {
    if (payloads_.count(number) != 0) continue;
    FrameResult missing;
    missing.reason = SegmentFileName(number) + " is missing";
    Note(EndState::kCorrupt, *events_, missing);
  }
}

void RankReaderImpl::ScanBatch(const FrameResult& frame, const Bytes& payload) {
  WireReader in_batch(payload);
  std::span<const std::byte> encoded;
  Event event;
  bool good = true;
  while (good && NextInBatch(in_batch, encoded)) {
    uint32_t body_field = 0;
    good = DecodeEvent(encoded, event, &body_field);
    if (!good) break;
    summary_.Add(event, body_field);
    Count(event);
  }
  if (!good || !in_batch.ok()) {
    FrameResult bad = frame;
    bad.reason = "a batch holds an event that cannot be decoded";
    Note(EndState::kCorrupt, *events_, bad);
  }
  batches_.Add(summary_.Take(frame.offset, frame.size));
}

void RankReaderImpl::TakeLeftOut(const Bytes& payload) {
  LeftOutMessage message;
  if (!Decode(payload, message)) return;
  left_out_ = {message.payloads, message.payload_bytes, std::string(message.what)};
}

void RankReaderImpl::Count(const Event& event) {
  ++totals_.events;
  const auto [last, is_new] = last_seq_.try_emplace(event.thread, event.seq);
  if (!is_new) last->second = std::max(last->second, event.seq);
  if (tail_ != nullptr) emergencies_.erase({event.thread, event.seq});
  if (const auto* step = event.As<Step>()) {
    if (totals_.steps == 0) totals_.first_step = step->step;
    totals_.last_step = step->step;
    ++totals_.steps;
  } else if (const auto* degraded = event.As<Degraded>()) {
    totals_.events_lost = std::max(totals_.events_lost, degraded->events_lost);
    totals_.payloads_lost = std::max(totals_.payloads_lost, degraded->payloads_lost);
  } else if (const auto* window = event.As<WindowChange>()) {
    const SegmentRange range{window->first_segment, window->last_segment};
    if (window->what == static_cast<uint32_t>(WindowEvent::kDropped)) {
      AddRange(totals_.dropped, range);
      totals_.payloads_dropped += window->payloads;
      totals_.payload_bytes_dropped += window->payload_bytes;
    } else if (window->what == static_cast<uint32_t>(WindowEvent::kMarked)) {
      for (Segment& segment : totals_.segments)
        segment.marked |= Contains({range}, segment.number) ? 1 : 0;
    }
  }
}

void RankReaderImpl::AddTail() {
  totals_.pressure = tail_->pressure();
  for (const TailPayload& part : tail_->payloads()) table_.AddTailPart(part);
  if (!tail_->damage().empty()) {
    if (!end_.detail.empty()) end_.detail += "; ";
    end_.detail += tail_->damage();
  }
  const auto& events = tail_->events();
  const std::unordered_map<uint32_t, uint64_t> in_file = last_seq_;
  std::vector<std::pair<uint32_t, uint64_t>> places;  // thread and seq of each of tail_events_
  Event event;
  for (size_t i = 0; i < events.size(); ++i) {
    uint32_t body_field = 0;
    if (!DecodeEvent(events[i], event, &body_field)) continue;
    const bool from_ring = i < RingEvents(*tail_);
    const auto last = in_file.find(event.thread);
    const bool have = from_ring ? last != in_file.end() && event.seq <= last->second
                                : emergencies_.count({event.thread, event.seq}) == 0;
    if (have) continue;
    size_t place = places.size();
    if (!from_ring) {  // in front of what its thread did afterwards
      const auto later = std::find_if(places.begin(), places.end(), [&](const auto& other) {
        return other.first == event.thread && other.second > event.seq;
      });
      place = static_cast<size_t>(later - places.begin());
    }
    places.insert(places.begin() + static_cast<ptrdiff_t>(place), {event.thread, event.seq});
    tail_events_.insert(tail_events_.begin() + static_cast<ptrdiff_t>(place), events[i]);
    summary_.Add(event, body_field);
    Count(event);
  }
  end_.tail_events = tail_events_.size();
  if (!tail_events_.empty()) batches_.Add(summary_.Take(events_->size(), 0));
}

}  // namespace deja::format
