// The implementation of RankReader: rank_reader.cc reads, rank_open.cc opens.
//
// Private to these two. Memory: the index, the payload table and what of the tail is not in files.
#ifndef DEJA_FORMAT_READER_RANK_READER_IMPL_H_
#define DEJA_FORMAT_READER_RANK_READER_IMPL_H_

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/os/file.h"
#include "common/runtime/futex.h"
#include "format/layout/payload_segments.h"
#include "format/payloads/payload_table.h"
#include "format/reader/event_cursor.h"
#include "format/reader/file_ranges.h"
#include "format/reader/rank_reader.h"
#include "format/tail/tail_reader.h"
#include "format/wire/batch_info.h"
#include "format/wire/frame_reader.h"

namespace deja::format {

class RankReaderImpl final : public RankReader {
 public:
  RankReaderImpl(std::string folder, const ReadOptions& options)
      : folder_(std::move(folder)),
        share_descriptors_(options.share_descriptors),
        spill_beyond_(options.spill_beyond),
        spill_folder_(options.spill_folder) {}

  // Reads header, index and tail. Once, before anything else; an error leaves nothing to read.
  Status Load(const ReadOptions& options);

  [[nodiscard]] const TraceHeader& header() const override { return header_; }
  [[nodiscard]] const EndReport& end() const override { return end_; }
  [[nodiscard]] const Footer& totals() const override { return totals_; }
  [[nodiscard]] const LeftOut& left_out() const override { return left_out_; }
  [[nodiscard]] const BatchList& batches() const override { return batches_; }
  [[nodiscard]] uint64_t file_bytes() const override {
    uint64_t bytes = events_->size();
    for (const auto& [segment, file] : payloads_) bytes += file->size();
    return bytes;
  }

  [[nodiscard]] std::unique_ptr<EventCursor> Events() const override { return EventsFromBatch(0); }
  [[nodiscard]] std::unique_ptr<EventCursor> EventsFromOp(uint32_t comm,
                                                          uint64_t comm_seq) const override {
    return EventsFromBatch(batches_.FindOperation(comm, comm_seq));
  }
  [[nodiscard]] std::unique_ptr<EventCursor> EventsFromStep(uint64_t step) const override {
    return EventsFromBatch(batches_.FindStep(step));
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
    return MakeEventCursor(*events_, batches_, tail_, tail_events_, from, to);
  }
  // The tables of all who share payloads with this rank, its own among them. Made by the first
  // call.
  [[nodiscard]] const std::vector<const PayloadTable*>& Tables() const;
  void FindPeers() const;
  // Why a payload cannot be had.
  [[nodiscard]] tl::unexpected<Error> NotThere() const;
  // The size of a payload that several of them have together.
  [[nodiscard]] std::optional<uint64_t> SharedSize(const Hash128& hash) const;

  [[nodiscard]] Result<std::unique_ptr<ReadFile>> OpenFile(const std::string& path) const;
  Status OpenFiles();
  void ClearTable();
  // True if the payload files that the footer counts on are there and finished.
  [[nodiscard]] bool HasSegments(const Footer& footer) const;
  Status CheckKind();
  Status LoadHeader();
  Status LoadHeaderFrom(const ReadFile& file);
  void OpenTail();
  // From footer and index; false if that is not possible.
  bool LoadIndexed();
  bool LoadWholeIndex(FrameReader& reader, const Footer& footer, uint64_t from, uint64_t to);
  bool LoadBatchesAndRest(FrameReader& reader, const Footer& footer, uint64_t from, uint64_t to,
                          size_t budget);
  bool LoadIndexFrames(FrameReader& reader, uint64_t from, uint64_t to, size_t budget);
  bool LoadIndex(Index& index, uint64_t end);
  void ScanEvents();
  void NoteMissing(const Footer& footer);
  void ScanBatch(const FrameResult& frame, const std::vector<std::byte>& payload);
  void ScanPayloads();
  void ScanSegment(uint32_t segment, const ReadFile& file);
  void AddTail();
  void TakeLeftOut(const std::vector<std::byte>& payload);
  void Count(const Event& event);
  void Note(EndState state, const ReadFile& file, const FrameResult& frame);

  std::string folder_;
  bool share_descriptors_;
  size_t spill_beyond_;
  std::string spill_folder_;
  std::unique_ptr<ReadFile> events_;
  std::map<uint32_t, std::unique_ptr<ReadFile>> payloads_;  // by segment
  std::vector<std::byte> header_bytes_;
  TraceHeader header_;
  EndReport end_;
  Footer totals_;
  LeftOut left_out_;
  BatchList batches_;
  std::vector<BatchBlock> batch_blocks_;  // while the index is read
  PayloadTable table_;
  std::shared_ptr<const TailReader> tail_;  // null when it is not needed or not there
  TailEvents tail_events_;
  BatchSummary summary_;
  // While a folder is scanned: the greatest seq of each thread, and the events from emergency slots
  // of the tail that the file has already.
  std::unordered_map<uint32_t, uint64_t> last_seq_;
  std::set<std::pair<uint32_t, uint64_t>> emergencies_;

  Peers peers_;
  mutable FutexMutex tables_mutex_;
  mutable std::vector<const PayloadTable*> tables_;
  mutable std::vector<const RankReader*> peers_read_;  // whose tables these are, but for our own
  mutable std::vector<std::unique_ptr<RankReader>> neighbours_;  // opened for their tables
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_RANK_READER_IMPL_H_
