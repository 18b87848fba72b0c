#include "format/rank_reader.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "format/batch_info.h"
#include "format/file.h"
#include "format/frame_format.h"
#include "format/frame_reader.h"
#include "format/futex.h"
#include "format/message_codec.h"
#include "format/payload_segments.h"
#include "format/payload_table.h"
#include "format/rank_folder.h"
#include "format/tail_reader.h"

namespace deja::format {
namespace {

using Bytes = std::vector<std::byte>;

// Events of the tail that the file does not have, in the order in which they are handed out.
using TailEvents = std::vector<std::span<const std::byte>>;

// How many of the tail's events came from rings; those from emergency slots follow them.
size_t RingEvents(const TailReader& tail) {
  return tail.events().size() - std::min(tail.events().size(), tail.emergency_events());
}

// Field number of the body of a serialized Event, found without decoding it; 0 if there is none.
uint32_t PeekBodyField(std::span<const std::byte> in) {
  constexpr uint32_t kLastOfHead = 3;
  WireReader reader(in);
  uint32_t field = 0;
  WireType type{};
  while (reader.Tag(field, type)) {
    if (field > kLastOfHead && type == WireType::kBytes) return field;
    reader.Skip(type);
  }
  return 0;
}

class EventCursorImpl final : public EventCursor {
 public:
  EventCursorImpl(const ReadFile* file, const std::vector<BatchInfo>* batches,
                  std::shared_ptr<const TailReader> tail, const TailEvents* tail_events,
                  size_t first_batch, size_t end_batch)
      : reader_(*file),
        file_(file),
        batches_(batches),
        tail_(std::move(tail)),
        tail_events_(tail_events),
        next_batch_(first_batch),
        end_batch_(std::min(end_batch, batches->size())) {}

  const Event* Next() override { return NextOf(~uint32_t{0}); }
  const Event* NextOf(uint32_t kinds) override {
    for (;;) {
      std::span<const std::byte> encoded;
      if (!NextEncoded(encoded)) {
        if (!LoadBatch()) return nullptr;
        continue;
      }
      if (kinds != ~uint32_t{0}) {
        const uint32_t field = PeekBodyField(encoded);
        if (field >= 32 || (kinds >> field & 1) == 0) continue;
      }
      if (DecodeEvent(encoded, event_)) {
        encoded_ = encoded;
        return &event_;
      }
      Damaged("an event cannot be decoded");
      in_batch_ = WireReader({});
      tail_at_ = tail_end_;
    }
  }
  [[nodiscard]] std::span<const std::byte> encoded() const override { return encoded_; }
  [[nodiscard]] std::shared_ptr<const void> batch() const override {
    if (buffer_ != nullptr) return buffer_;
    return tail_;
  }
  [[nodiscard]] size_t batch_number() const override { return next_batch_ - 1; }
  [[nodiscard]] const std::string& damage() const override { return damage_; }
  [[nodiscard]] uint64_t damaged_batches() const override { return damaged_batches_; }

 private:
  bool NextEncoded(std::span<const std::byte>& encoded) {
    if (tail_at_ < tail_end_) {
      encoded = (*tail_events_)[tail_at_++];
      return true;
    }
    if (NextInBatch(in_batch_, encoded)) return true;
    if (!in_batch_.ok()) {
      Damaged("the batch cannot be decoded");
      in_batch_ = WireReader({});
    }
    return false;
  }

  // Makes the next batch the current one; false if there is none.
  bool LoadBatch() {
    if (next_batch_ >= end_batch_) return false;
    const BatchInfo& info = (*batches_)[next_batch_++];
    in_batch_ = WireReader({});
    if (info.size == 0) {  // the tail's
      buffer_ = nullptr;
      tail_at_ = 0;
      tail_end_ = tail_events_->size();
      return true;
    }
    auto buffer = std::make_shared<Bytes>();
    const FrameResult frame = reader_.ReadAt(info.offset, *buffer);
    if (frame.outcome != FrameOutcome::kRecord || frame.type != FrameType::kEvents) {
      Damaged(frame.reason.empty() ? "not a batch of events" : frame.reason);
      return true;
    }
    in_batch_ = WireReader(*buffer);
    buffer_ = std::move(buffer);
    return true;
  }

  void Damaged(const std::string& what) {
    ++damaged_batches_;
    if (!damage_.empty()) return;
    const BatchInfo& info = (*batches_)[batch_number()];
    damage_ = file_->name() + ", offset " + std::to_string(info.offset) + ": " + what;
  }

  FrameReader reader_;
  const ReadFile* file_;
  const std::vector<BatchInfo>* batches_;
  std::shared_ptr<const TailReader> tail_;
  const TailEvents* tail_events_;
  size_t next_batch_;
  size_t end_batch_;
  std::shared_ptr<const Bytes> buffer_;
  WireReader in_batch_{{}};
  size_t tail_at_ = 0;
  size_t tail_end_ = 0;
  Event event_;
  std::span<const std::byte> encoded_;
  std::string damage_;
  uint64_t damaged_batches_ = 0;
};

class RankReaderImpl final : public RankReader {
 public:
  explicit RankReaderImpl(std::string folder) : folder_(std::move(folder)) {}

  Status Load(const ReadOptions& options);

  [[nodiscard]] const TraceHeader& header() const override { return header_; }
  [[nodiscard]] const EndReport& end() const override { return end_; }
  [[nodiscard]] const Footer& totals() const override { return totals_; }
  [[nodiscard]] const LeftOut& left_out() const override { return left_out_; }
  [[nodiscard]] const std::vector<BatchInfo>& batches() const override { return batches_; }
  [[nodiscard]] uint64_t file_bytes() const override {
    uint64_t bytes = events_->size();
    for (const auto& [segment, file] : payloads_) bytes += file->size();
    return bytes;
  }

  [[nodiscard]] std::unique_ptr<EventCursor> Events() const override { return EventsFromBatch(0); }
  [[nodiscard]] std::unique_ptr<EventCursor> EventsFromOp(uint32_t comm,
                                                          uint64_t comm_seq) const override {
    const auto holds = [&](const BatchInfo& batch) {
      return std::any_of(batch.comms.begin(), batch.comms.end(), [&](const CommRange& range) {
        return range.comm == comm && range.first_seq <= comm_seq && comm_seq <= range.last_seq;
      });
    };
    return EventsFromBatch(IndexOf(holds));
  }
  [[nodiscard]] std::unique_ptr<EventCursor> EventsFromStep(uint64_t step) const override {
    const auto holds = [&](const BatchInfo& batch) {
      return std::find(batch.steps.begin(), batch.steps.end(), step) != batch.steps.end();
    };
    return EventsFromBatch(IndexOf(holds));
  }
  [[nodiscard]] std::unique_ptr<EventCursor> EventsFromBatch(size_t batch) const override {
    return Cursor(batch, batches_.size());
  }
  [[nodiscard]] std::unique_ptr<EventCursor> EventsOfBatch(size_t batch) const override {
    return Cursor(batch, batch + 1);
  }

  [[nodiscard]] std::optional<uint64_t> PayloadSize(const Hash128& hash) const override {
    const std::optional<uint64_t> size = table_.Size(hash);
    return size || header_.shares_with.empty() ? size : SharedSize(hash);
  }
  Status ReadPayload(const Hash128& hash, std::span<std::byte> out) const override {
    const std::optional<uint64_t> size = PayloadSize(hash);
    if (!size) return NotThere();
    if (*size != out.size()) {
      return Fail(ErrorCode::kInvalidArgument, "the buffer does not have the payload's size");
    }
    size_t done = 0;
    return StreamPayload(hash, [&](std::span<const std::byte> bytes) {
      std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<ptrdiff_t>(done));
      done += bytes.size();
    });
  }
  Status StreamPayload(const Hash128& hash,
                       const std::function<void(std::span<const std::byte>)>& sink) const override {
    if (header_.shares_with.empty() || table_.Size(hash)) return table_.Stream(hash, sink);
    return PayloadTable::StreamTogether(hash, Tables(), sink);
  }
  [[nodiscard]] uint32_t PayloadElementSize(const Hash128& hash) const override {
    if (const auto size = table_.ElementSize(hash)) return *size;
    if (header_.shares_with.empty()) return 1;
    for (const PayloadTable* table : Tables()) {
      if (const auto size = table->ElementSize(hash)) return *size;
    }
    return 1;
  }
  [[nodiscard]] std::vector<PayloadInfo> payloads() const override { return table_.List(); }
  void SetPeers(Peers peers) override { peers_ = std::move(peers); }
  [[nodiscard]] const PayloadTable& own_payloads() const override { return table_; }
  [[nodiscard]] bool Dropped(uint32_t segment) const override {
    if (Contains(totals_.dropped, segment)) return true;
    if (header_.shares_with.empty()) return false;
    (void)Tables();
    return std::any_of(peers_read_.begin(), peers_read_.end(), [&](const RankReader* peer) {
      return Contains(peer->totals().dropped, segment);
    });
  }

 private:
  [[nodiscard]] std::unique_ptr<EventCursor> Cursor(size_t from, size_t to) const {
    return std::make_unique<EventCursorImpl>(events_.get(), &batches_, tail_, &tail_events_, from,
                                             to);
  }
  // The tables of all who share payloads with this rank, its own among them. Made by the first
  // call.
  [[nodiscard]] const std::vector<const PayloadTable*>& Tables() const;
  void FindPeers() const;
  // Why a payload cannot be had.
  [[nodiscard]] tl::unexpected<Error> NotThere() const;
  // The size of a payload that several of them have together.
  [[nodiscard]] std::optional<uint64_t> SharedSize(const Hash128& hash) const;

  template <typename Predicate>
  [[nodiscard]] size_t IndexOf(const Predicate& holds) const {
    return static_cast<size_t>(std::find_if(batches_.begin(), batches_.end(), holds) -
                               batches_.begin());
  }

  Status OpenFiles();
  void ClearTable();
  // True if the payload files that the footer counts on are there and finished.
  [[nodiscard]] bool HasSegments(const Footer& footer) const;
  Status LoadHeader();
  Status LoadHeaderFrom(const ReadFile& file);
  void OpenTail();
  // From footer and index; false if that is not possible.
  bool LoadIndexed();
  bool LoadIndexFrames(FrameReader& reader, uint64_t from, uint64_t to);
  bool LoadIndex(const Index& index, uint64_t end);
  void ScanEvents();
  void NoteMissing(const Footer& footer);
  void ScanBatch(const FrameResult& frame, const Bytes& payload);
  void ScanPayloads();
  void ScanSegment(uint32_t segment, const ReadFile& file);
  void AddTail();
  void TakeLeftOut(const Bytes& payload);
  void Count(const Event& event);
  void Note(EndState state, const ReadFile& file, const FrameResult& frame);

  std::string folder_;
  std::unique_ptr<ReadFile> events_;
  std::map<uint32_t, std::unique_ptr<ReadFile>> payloads_;  // by segment
  Bytes header_bytes_;
  TraceHeader header_;
  EndReport end_;
  Footer totals_;
  LeftOut left_out_;
  std::vector<BatchInfo> batches_;
  PayloadTable table_;
  std::shared_ptr<const TailReader> tail_;  // null when it is not needed or not there
  TailEvents tail_events_;
  BatchSummary summary_;
  // While a folder is scanned: the greatest seq of each thread, and which of the events that came
  // from emergency slots of the tail the file has already.
  std::unordered_map<uint32_t, uint64_t> last_seq_;
  std::set<std::pair<uint32_t, uint64_t>> emergencies_;

  Peers peers_;
  mutable FutexMutex tables_mutex_;
  mutable std::vector<const PayloadTable*> tables_;
  mutable std::vector<const RankReader*> peers_read_;  // whose tables these are, but for our own
  mutable std::vector<std::unique_ptr<RankReader>> neighbours_;  // opened for their tables
};

const std::vector<const PayloadTable*>& RankReaderImpl::Tables() const {
  tables_mutex_.lock();
  if (tables_.empty()) FindPeers();
  tables_mutex_.unlock();
  return tables_;
}

void RankReaderImpl::FindPeers() const {
  tables_.push_back(&table_);
  std::vector<const RankReader*> candidates;
  if (peers_) {
    candidates = peers_();
  } else {
    const size_t slash = folder_.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : folder_.substr(0, slash);
    for (const RankFolderName& name : ListRankFolderNames(parent)) {
      const std::string folder = parent + "/" + MakeRankFolderName(name.rank, name.attempt);
      if (name.rank == header_.rank && name.attempt == header_.attempt) continue;
      auto neighbour = std::make_unique<RankReaderImpl>(folder);
      // Its header alone says whether it is worth reading.
      if (!neighbour->OpenFiles() || !neighbour->LoadHeader() ||
          neighbour->header().shares_with != header_.shares_with) {
        continue;
      }
      if (Result<std::unique_ptr<RankReader>> opened = RankReader::Open(folder)) {
        candidates.push_back(opened->get());
        neighbours_.push_back(std::move(*opened));
      }
    }
  }
  for (const RankReader* candidate : candidates) {
    if (candidate == this || candidate->header().shares_with != header_.shares_with) continue;
    tables_.push_back(&candidate->own_payloads());
    peers_read_.push_back(candidate);
  }
}

tl::unexpected<Error> RankReaderImpl::NotThere() const {
  if (left_out_.payloads != 0) {
    return Fail(ErrorCode::kNotFound,
                "the payload was left out when the trace was packed (left out of " + folder_ +
                    ": " + left_out_.what +
                    "); take the trace that was packed, or pack it again with more");
  }
  return Fail(ErrorCode::kNotFound,
              "the payload is not in " + folder_ +
                  (header_.shares_with.empty()
                       ? ""
                       : " nor in the folders of the ranks that it shares payloads with; "
                         "'deja verify' says which are missing"));
}

std::optional<uint64_t> RankReaderImpl::SharedSize(const Hash128& hash) const {
  std::optional<uint64_t> total_size;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const PayloadTable* table : Tables()) {
    const std::optional<PayloadTable::Part> part = table->PartOf(hash);
    if (!part) continue;
    if (const std::optional<uint64_t> whole = table->Size(hash)) return whole;
    if (total_size && *total_size != part->total_size) continue;
    total_size = part->total_size;
    ranges.insert(ranges.end(), part->ranges.begin(), part->ranges.end());
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t done = 0;
  for (const auto& [offset, size] : ranges) {
    if (offset > done) return std::nullopt;
    done = std::max(done, offset + size);
  }
  return total_size && done == *total_size ? total_size : std::nullopt;
}

Status RankReaderImpl::OpenFiles() {
  DEJA_ASSIGN_OR_RETURN(events_, OpenReadFile(folder_ + "/" + kEventsFile));
  payloads_.clear();
  for (const uint32_t segment : ListSegments(folder_)) {
    auto file = OpenReadFile(folder_ + "/" + SegmentFileName(segment));
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
}

Status RankReaderImpl::LoadHeaderFrom(const ReadFile& file) {
  FrameReader reader(file);
  DEJA_RETURN_IF_ERROR(reader.CheckMagic());
  const FrameResult frame = reader.ReadAt(kMagicBytes, header_bytes_);
  if (frame.outcome == FrameOutcome::kTornTail) {
    return Fail(ErrorCode::kTruncated, file.name() + " stops before the end of its header");
  }
  header_ = TraceHeader{};
  header_.format_major = 0;  // what a header says that does not say them
  header_.format_minor = 0;
  if (frame.outcome != FrameOutcome::kRecord || frame.type != FrameType::kHeader ||
      !Decode(header_bytes_, header_) || header_.format_major == 0) {
    return Fail(ErrorCode::kCorrupt,
                file.name() + ": the header cannot be read" +
                    (frame.reason.empty() ? std::string() : ": " + frame.reason));
  }
  if (header_.format_major > kFormatMajor) {
    return Fail(ErrorCode::kUnsupportedVersion,
                file.name() + " has format version " + std::to_string(header_.format_major) +
                    "; this Deja reads version " + std::to_string(kFormatMajor) +
                    ": use the Deja that recorded it or a newer one");
  }
  return {};
}

Status RankReaderImpl::LoadHeader() {
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
  Result<std::unique_ptr<TailReader>> tail = TailReader::Open(path, header_.tail.id);
  if (!tail) {
    end_.detail = tail.error().code == ErrorCode::kNotFound
                      ? "the tail " + path + " is not there (any more)"
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
    // The tail first, then the files anew: what a live process takes out of the tail meanwhile is
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
  ScanEvents();
  if (tail_ != nullptr) AddTail();
  if (totals_.segments.size() == 1 && totals_.segments.front().number == 0)
    totals_.segments.clear();
  totals_.payloads = table_.complete();
  totals_.payload_bytes = table_.complete_bytes();
  if (!header_.shares_with.empty()) {
    for (const Hash128& hash : table_.Partial()) {
      ++totals_.partial_payloads;
      const auto part = table_.PartOf(hash);
      for (const auto& [offset, size] : part->ranges) totals_.partial_payload_bytes += size;
    }
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
  if (!LoadIndexFrames(reader, index_at, *footer_at)) {
    batches_.clear();
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

bool RankReaderImpl::LoadIndexFrames(FrameReader& reader, uint64_t from, uint64_t to) {
  // An honest index has some bytes of file behind each of its elements. A larger one is not read:
  // the scan that replaces it costs memory for what is really there only.
  size_t budget = (64 << 10) + static_cast<size_t>(file_bytes() / 2);
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

bool RankReaderImpl::LoadIndex(const Index& index, uint64_t end) {
  for (const BatchInfo& batch : index.batches) {
    const uint64_t least =
        batches_.empty() ? kMagicBytes : batches_.back().offset + batches_.back().size;
    if (batch.offset < least || batch.size < kFrameHeaderBytes || batch.offset > end ||
        batch.size > end - batch.offset) {
      return false;
    }
    batches_.push_back(batch);
  }
  return std::all_of(
             index.payloads.begin(), index.payloads.end(),
             [&](const PayloadInfo& info) { return table_.AddIndexed(info).has_value(); }) &&
         std::all_of(index.pieces.begin(), index.pieces.end(), [&](const PayloadPieces& info) {
           return table_.AddIndexedPieces(info).has_value();
         });
}

// ---- A folder without index

void RankReaderImpl::ScanPayloads() {
  for (const auto& [segment, file] : payloads_) ScanSegment(segment, *file);
}

void RankReaderImpl::ScanSegment(uint32_t segment, const ReadFile& file) {
  FrameReader reader(file);
  Bytes payload;
  Segment facts;
  facts.number = segment;
  facts.bytes = file.size();
  const Status magic = reader.CheckMagic();
  if (!magic) {
    FrameResult whole;
    whole.size = file.size();
    whole.reason = magic.error().message;
    Note(magic.error().code == ErrorCode::kTruncated ? EndState::kTornTail : EndState::kCorrupt,
         file, whole);
    return;
  }
  for (;;) {
    FrameResult frame = reader.Next(payload);
    if (frame.outcome == FrameOutcome::kCleanEnd) break;
    if (frame.outcome != FrameOutcome::kRecord) {
      const bool torn = frame.outcome == FrameOutcome::kTornTail;
      Note(torn ? EndState::kTornTail : EndState::kCorrupt, file, frame);
      if (torn) break;
      continue;
    }
    if (frame.type != FrameType::kPayloadChunk) continue;
    PayloadChunk chunk;
    const Status parsed = ParseChunk(payload, chunk);
    if (parsed && table_.AddChunk(chunk, segment, frame.offset)) {
      facts.first_step = facts.payloads == 0 ? chunk.step : std::min(facts.first_step, chunk.step);
      facts.last_step = std::max(facts.last_step, chunk.step);
      if (chunk.offset == 0) {
        ++facts.payloads;
        facts.payload_bytes += chunk.total_size;
      }
      continue;
    }
    frame.reason = parsed ? "the chunk contradicts others of its payload" : parsed.error().message;
    Note(EndState::kCorrupt, file, frame);
  }
  totals_.segments.push_back(facts);
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
  batches_.push_back(summary_.Take(frame.offset, frame.size));
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
  if (!tail_events_.empty()) batches_.push_back(summary_.Take(events_->size(), 0));
}

}  // namespace

Result<std::unique_ptr<RankReader>> RankReader::Open(const std::string& folder,
                                                     const ReadOptions& options) {
  auto reader = std::make_unique<RankReaderImpl>(folder);
  DEJA_RETURN_IF_ERROR(reader->Load(options));
  return std::unique_ptr<RankReader>(std::move(reader));
}

}  // namespace deja::format
