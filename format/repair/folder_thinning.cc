#include "format/repair/folder_thinning.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/os/file.h"
#include "common/runtime/futex.h"
#include "format/layout/folder_lock.h"
#include "format/layout/payload_segments.h"
#include "format/log/rank_log.h"
#include "format/wire/batch_info.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_reader.h"
#include "format/wire/frame_writer.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

uint64_t BytesOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

// What the end of a finished events.deja says.
struct Ending {
  Footer footer;
  Index index;
};

Status ReadFooter(const ReadFile& file, Ending& ending, uint64_t& at) {
  const Result<uint64_t> footer_at = FindFooter(file);
  if (!footer_at) return tl::unexpected<Error>(footer_at.error());
  at = *footer_at;
  FrameReader reader(file);
  std::vector<std::byte> payload;
  if (reader.ReadAt(at, payload).outcome != FrameOutcome::kRecord ||
      !Decode(payload, ending.footer))
    return Fail(ErrorCode::kCorrupt, "opening: " + file.name() + ": its footer cannot be read");
  return {};
}

// Messages that follow one another are one.
Status ReadIndex(const ReadFile& file, uint64_t end, Ending& ending) {
  uint64_t at = ending.footer.index_offset == 0 ? end : ending.footer.index_offset;
  FrameReader reader(file);
  std::vector<std::byte> payload;
  while (at < end) {
    const FrameResult frame = reader.ReadAt(at, payload);
    if (frame.outcome != FrameOutcome::kRecord)
      return Fail(ErrorCode::kCorrupt, "opening: " + file.name() + ": its index cannot be read");
    at += frame.size;
    if (frame.type != FrameType::kIndex) continue;
    Index part;
    if (!Decode(payload, part))
      return Fail(ErrorCode::kCorrupt, "opening: " + file.name() + ": its index cannot be read");
    const auto move = [](auto& from, auto& to) {
      std::move(from.begin(), from.end(), std::back_inserter(to));
    };
    move(part.batches, ending.index.batches);
    move(part.payloads, ending.index.payloads);
    move(part.pieces, ending.index.pieces);
  }
  return {};
}

// All of its files that are left: a footer does not list payloads.deja where that is alone.
std::vector<Segment> SegmentsOf(const std::string& folder, const Footer& footer) {
  if (!footer.segments.empty() || Contains(footer.dropped, 0)) return footer.segments;
  Segment only;
  only.bytes = BytesOf(folder + "/" + SegmentFileName(0));
  only.payloads = footer.payloads;
  only.payload_bytes = footer.payload_bytes;
  return {only};
}

class Thinning {
 public:
  Thinning(Ending& ending, std::vector<Segment> segments, std::string_view reason)
      : ending_(ending), segments_(std::move(segments)), reason_(reason) {
    for (const BatchInfo& batch : ending.index.batches)
      for (const ThreadRange& thread : batch.threads)
        if (thread.thread == kLogThread) next_seq_ = std::max(next_seq_, thread.last_seq + 1);
  }

  // Takes it out of index and footer, and makes the event that says so.
  void Drop(const Segment& segment) {
    SegmentRange range{0, segment.number};
    for (const Segment& other : segments_)
      if (other.number < segment.number) range.first = std::max(range.first, other.number + 1);
    WindowChange change;
    change.what = static_cast<uint32_t>(WindowEvent::kDropped);
    change.first_segment = range.first;
    change.last_segment = range.last;
    change.reason = reason_;
    change.payloads = segment.payloads;
    change.payload_bytes = segment.payload_bytes;
    const std::string event = EncodeEventToString({kLogThread, next_seq_++, MonotonicNs()}, change);
    Event decoded;
    uint32_t body_field = 0;
    if (DecodeEvent(AsBytes(event), decoded, &body_field)) summary_.Add(decoded, body_field);
    AppendToBatch(AsBytes(event), batch_);
    Footer& footer = ending_.footer;
    ++footer.events;
    AddRange(footer.dropped, range);
    footer.payloads_dropped += segment.payloads;
    footer.payload_bytes_dropped += segment.payload_bytes;
    const auto is_in = [&](const auto& info) { return info.segment == segment.number; };
    std::erase_if(ending_.index.payloads, is_in);
    std::erase_if(ending_.index.pieces, is_in);
    std::erase_if(segments_, [&](const Segment& other) { return other.number == segment.number; });
  }

  Status Write(const std::string& path) {
    Footer& footer = ending_.footer;
    footer.segments = segments_;
    footer.payloads = ending_.index.payloads.size();
    footer.payload_bytes = 0;
    for (const PayloadInfo& info : ending_.index.payloads) footer.payload_bytes += info.total_size;
    footer.partial_payloads = ending_.index.pieces.size();
    footer.partial_payload_bytes = 0;
    for (const PayloadPieces& pieces : ending_.index.pieces)
      for (const uint64_t size : pieces.sizes) footer.partial_payload_bytes += size;
    DEJA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, OpenAppendFile(path));
    FrameWriter frames(std::move(file));
    DEJA_ASSIGN_OR_RETURN(const uint64_t at, frames.Write(FrameType::kEvents, AsBytes(batch_)));
    ending_.index.batches.push_back(summary_.Take(at, frames.offset() - at));
    DEJA_RETURN_IF_ERROR(frames.WriteIndex(ending_.index, footer));
    return frames.WriteFooter(footer);
  }

  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }

 private:
  Ending& ending_;
  std::vector<Segment> segments_;
  const std::string_view reason_;
  uint64_t next_seq_ = 0;
  BatchSummary summary_;
  std::string batch_;
};

}  // namespace

Result<std::vector<Segment>> FinishedSegments(const std::string& folder) {
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<ReadFile> file,
                        OpenReadFile(folder + "/" + kEventsFile));
  Ending ending;
  uint64_t at = 0;
  DEJA_RETURN_IF_ERROR(ReadFooter(*file, ending, at));
  return SegmentsOf(folder, ending.footer);
}

Result<std::vector<Segment>> DropSegments(const std::string& folder,
                                          const std::function<bool(const Segment&)>& goes,
                                          std::string_view reason, uint64_t& freed) {
  const ScopedSignalBlock no_signals;  // SIGXFSZ
  const FolderLock alone(folder);
  const std::string events = folder + "/" + kEventsFile;
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<ReadFile> file, OpenReadFile(events));
  Ending ending;
  uint64_t at = 0;
  DEJA_RETURN_IF_ERROR(ReadFooter(*file, ending, at));
  std::vector<Segment> segments = SegmentsOf(folder, ending.footer);
  const std::vector<Segment> gone(segments.begin(),
                                  std::find_if_not(segments.begin(), segments.end(), goes));
  if (!gone.empty()) {
    DEJA_RETURN_IF_ERROR(ReadIndex(*file, at, ending));
    Thinning thinning(ending, std::move(segments), reason);
    for (const Segment& segment : gone) thinning.Drop(segment);
    DEJA_RETURN_IF_ERROR(thinning.Write(events));
    segments = thinning.segments();
  }
  for (const uint32_t number : ListSegments(folder)) {
    if (!Contains(ending.footer.dropped, number)) continue;
    const std::string path = folder + "/" + SegmentFileName(number);
    const uint64_t bytes = BytesOf(path);
    if (unlink(path.c_str()) == 0) freed += bytes;
  }
  return segments;
}

}  // namespace deja::format
