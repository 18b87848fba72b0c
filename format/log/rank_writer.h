// RankWriter: the two files of a rank's folder, and what the index will say about them.
//
// Used by the recorded process (through RankLog) and by recovery. Events are gathered into a batch
// that becomes one frame; payloads are cut into chunks, encoded and written at once, to the newest
// of the payload segments. A failed write leaves the file at its last whole frame; events and
// payloads fail independently.
//
// Owner: RankLog or recovery. One thread at a time; signals blocked by the caller.
#ifndef DEJA_FORMAT_LOG_RANK_WRITER_H_
#define DEJA_FORMAT_LOG_RANK_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/log/process_file.h"
#include "format/tensor/payload_bases.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/batch_info.h"
#include "format/wire/frame_writer.h"
#include "format/wire/index_elements.h"
#include "format/wire/messages.h"

namespace deja::format {

// A batch becomes a frame when it has this many bytes.
inline constexpr size_t kBatchBytes = 128 << 10;

struct PayloadPart {
  Hash128 hash;
  uint64_t total_size = 0;
  uint64_t offset = 0;
  uint32_t element_size = 1;
  std::span<const std::byte> bytes;
  uint64_t step = 0;    // how many had begun
  uint32_t series = 0;  // PayloadBases::Place
  // It is to be kept in this segment, or in a later one if that is the newest.
  uint32_t segment = std::numeric_limits<uint32_t>::max();
};

// Puts something around a file as it is opened; tests make writes fail with it.
using WrapFile = std::unique_ptr<AppendFile> (*)(std::unique_ptr<AppendFile> file);

// A payload of which pieces are in the file.
struct PartialPayload {
  struct Piece {
    uint64_t size = 0;
    uint64_t frame = 0;
  };
  uint64_t total_size = 0;
  std::map<uint64_t, Piece> pieces;  // by offset in the payload

  // Adds a piece: `size` bytes from `offset` of the payload, in the frame at `frame` of its file.
  void Add(uint64_t offset, uint64_t size, uint64_t frame);
  // The first byte from `offset` on that is not there, and how many of those after it neither.
  [[nodiscard]] std::pair<uint64_t, uint64_t> Gap(uint64_t offset) const;
  [[nodiscard]] bool IsWhole() const;
  // What an index says about it.
  [[nodiscard]] PayloadInfo Info(const Hash128& hash) const;
  [[nodiscard]] PayloadPieces Pieces(const Hash128& hash) const;
};

// A payload file and what is in it.
struct SegmentFile {
  Segment facts;
  std::vector<PayloadInfo> whole;
  std::map<Hash128, PartialPayload> partial;
  uint64_t end = 0;          // where the last whole frame ends
  uint64_t index_bytes = 0;  // about, of what an index says about it
  bool finished = false;     // with a footer after it
  bool has_chunks = false;   // perhaps of payloads that are not listed here
  uint64_t ended_ns = 0;     // when the next one began
  // Some payloads of an older one came too late for that: what refers to them names that one.
  uint32_t reaches_back = 0;  // that many numbers

  // Something of this step is about to be added, which was meant for `segment`.
  void Note(uint64_t step, uint32_t segment);
  [[nodiscard]] SegmentRange MeantFor() const {
    return {facts.number - reaches_back, facts.number};
  }
};

// What the files of a folder hold already.
struct RankFiles {
  std::vector<BatchInfo> batches;
  std::vector<SegmentFile> segments;  // by number
  Footer totals;
  uint64_t events_end = 0;  // where the last whole frame ends
  std::string header;       // encoded
};

struct RankWriterOptions {
  SpareFds* spare = nullptr;
  WrapFile wrap = nullptr;
  uint64_t base_memory = 0;  // for PayloadBases
  CodecEffort effort = CodecEffort::kSmall;
};

class RankWriter {
 public:
  // Makes `folder`, which must not exist, with two files that have no header yet.
  static Result<std::unique_ptr<RankWriter>> Create(const std::string& folder,
                                                    const RankWriterOptions& options);
  // Continues the files of `folder`; what follows their last whole frames is cut off.
  static Result<std::unique_ptr<RankWriter>> Continue(const std::string& folder, RankFiles files);

  // Gives both files their header; what they have already is kept after it.
  Status SetHeader(const TraceHeader& header);
  // The folder has been renamed.
  void Renamed(const std::string& folder);

  // True if a batch of `bytes` finds room on the disk.
  [[nodiscard]] bool HasRoomForEvents(uint64_t bytes) const {
    return MakeRoom(*events_file_, bytes).has_value();
  }

  // Adds one encoded event to the batch.
  void AddEvent(std::span<const std::byte> encoded_event);
  [[nodiscard]] size_t batch_bytes() const { return batch_.size(); }
  [[nodiscard]] uint64_t batch_events() const { return summary_.events(); }
  // Batches so far in which some rank's operations are.
  [[nodiscard]] uint64_t batches_with_ops() const { return batches_with_ops_; }
  // Writes the batch, if it is not empty. On failure the batch is gone (its events are in the
  // tail).
  Status WriteBatch();

  // Into the newest segment. What is there already is left out. True if this part made the payload
  // whole.
  Result<bool> WritePayload(const PayloadPart& part);

  // The payload files, oldest first; there is always one, and the last one grows.
  [[nodiscard]] const std::vector<SegmentFile>& segments() const { return segments_; }
  [[nodiscard]] uint64_t payload_file_bytes() const;
  [[nodiscard]] uint64_t newest_segment_bytes() const { return payloads_->offset(); }
  // With the index that it will end with, about.
  [[nodiscard]] uint64_t event_file_bytes() const { return events_->offset() + index_bytes_; }
  // Goes over to segment `number`, which is greater: the newest is renamed if nothing is in it, as
  // in most short processes.
  Status AdvanceTo(uint32_t number, uint64_t now_ns);
  // Finishes the newest segment and begins `number`, which is greater.
  Status BeginSegment(uint32_t number, uint64_t now_ns);
  // Marks the segments that stay, for the footer.
  void MarkSegments(uint32_t first, uint32_t last);
  // Removes a segment that is not the newest. The events that say so have been written.
  void DropSegment(uint32_t number);
  // The trace lacks this segment, which has no file. The events that say so have been written.
  void LackSegment(uint32_t number);
  // What DropSegment would make the trace lack: the segment, and the numbers before it that are not
  // there.
  [[nodiscard]] SegmentRange RangeOf(uint32_t number) const;
  // What is to be said before.
  [[nodiscard]] WindowChange Dropping(const SegmentFile& segment, std::string_view reason) const;

  // Opens the files again after a failure. The next write may work, if there is room again.
  Status Retry();
  // Some room is kept for the end of a recording: a last batch that says what is lost, index and
  // footer. From now on it may be used.
  void SpendReserve() { spend_reserve_ = true; }
  // Gives back what of it was not needed.
  void ReleaseReserve();

  // The newest segment has this piece of a payload, though not in its lists.
  void Know(const Hash128& hash, uint64_t total_size, uint64_t offset, uint64_t size,
            uint64_t frame);

  // Index, footer and end. The totals of `footer` are filled in here; with `listing`, which lists
  // what all segments have, it brings the counts of payloads.
  Status Finish(Footer footer, IndexElements* listing = nullptr);

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const Footer& totals() const { return totals_; }

  // Closes the descriptors: in a child that inherited them, or until the next write, which opens
  // the files again.
  void CloseInChild();

 private:
  explicit RankWriter(const RankWriterOptions& options)
      : options_(options), bases_(options.base_memory) {}
  Result<std::unique_ptr<FrameWriter>> OpenFile(const char* name, FileStart start,
                                                ProcessFile*& raw);
  Status Rewrite(const char* name, const TraceHeader& header, std::unique_ptr<FrameWriter>& writer,
                 ProcessFile*& raw, std::map<uint64_t, uint64_t>& moved);
  Result<uint64_t> WriteChunk(const PayloadPart& part);
  bool EncodeDifference(const PayloadPart& part, const PayloadBases::Base& base,
                        PayloadChunk& chunk);
  Result<uint64_t> AppendChunk(const PayloadChunk& chunk);
  [[nodiscard]] Footer SegmentFooter(const SegmentFile& segment) const;
  void IndexSegments(Index& index, Footer& footer) const;
  void Count(const BatchInfo& batch, uint64_t events);
  void CountIndex(SegmentFile& segment, uint64_t bytes) {
    segment.index_bytes += bytes;
    index_bytes_ += bytes;
  }
  [[nodiscard]] Status MakeRoom(ProcessFile& file, uint64_t bytes) const;

  std::string folder_;
  RankWriterOptions options_;
  std::unique_ptr<FrameWriter> events_;
  std::unique_ptr<FrameWriter> payloads_;
  ProcessFile* events_file_ = nullptr;  // owned by events_
  ProcessFile* payloads_file_ = nullptr;

  std::string batch_;
  BatchSummary summary_;
  std::vector<BatchInfo> batches_;
  std::vector<SegmentFile> segments_;
  std::string header_;  // encoded
  uint64_t batches_with_ops_ = 0;
  uint64_t index_bytes_ = 0;  // about, when it is encoded; with those of all segments
  bool spend_reserve_ = false;
  Footer totals_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> difference_;
  PayloadBases bases_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_LOG_RANK_WRITER_H_
