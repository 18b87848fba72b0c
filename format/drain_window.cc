// The part of the Drainer that moves the window: which file a payload goes to, and which old files
// are removed.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "format/drainer.h"
#include "format/futex.h"
#include "format/mark.h"
#include "format/message_codec.h"

namespace deja::format {

// The segment that the block asks for or a later one, with room in the budget.
Status Drainer::MakePlaceFor(const BlockHeader& block) {
  if (!is_rank()) return {};
  const uint32_t current = writer_->segments().back().facts.number;
  const uint32_t seen = window_.segment();
  window_.Turn(current, writer_->newest_segment_bytes(), MonotonicNs());
  // Full: also what was meant for this one may go to the next.
  const bool full = seen == current && window_.segment() > seen;
  const uint32_t segment = std::max(block.segment, full ? window_.segment() : 0);
  if (segment > current) {
    DEJA_RETURN_IF_ERROR(writer_->BeginSegment(segment, MonotonicNs()));
    DropExpired();
  }
  if (!window_.has_limit()) return {};
  const uint64_t limit = window_.Limit(writer_->event_file_bytes());
  while (writer_->payload_file_bytes() + block.size > limit) {
    if (!DropOldest(window_.limited_by_budget() ? "disk budget" : "size")) break;
  }
  if (writer_->segments().size() > 1 && writer_->payload_file_bytes() + block.size > limit) {
    return Fail(ErrorCode::kLimit, "what is marked to be kept fills the disk budget");
  }
  return {};
}

// On a full disk the oldest segments go first.
Status Drainer::WriteBlock(const BlockHeader& block) {
  Status written = TryBlock(block);
  while (!written && (written.error().sys_errno == ENOSPC || written.error().sys_errno == EDQUOT) &&
         is_rank() && DropOldest("full disk") && writer_->Retry()) {
    written = TryBlock(block);
  }
  return written;
}

Status Drainer::TryBlock(const BlockHeader& block) {
  DEJA_RETURN_IF_ERROR(MakePlaceFor(block));
  PayloadPart part;
  std::memcpy(part.hash.bytes.data(), block.hash, sizeof block.hash);
  part.total_size = block.total_size;
  part.offset = block.offset;
  part.element_size = ElementSizeOf(block.kind);
  part.series = SeriesOf(block.kind);
  part.bytes = {reinterpret_cast<const std::byte*>(&block + 1), block.size};
  part.step = block.step;
  DEJA_ASSIGN_OR_RETURN([[maybe_unused]] const bool whole, writer_->WritePayload(part));
  return {};
}

// Says that the segment is gone, and then removes it: a reader that misses the file knows why.
bool Drainer::DropSegment(const SegmentFile& segment, const char* reason) {
  const uint32_t number = segment.facts.number;
  const SegmentRange range = writer_->RangeOf(number);
  WindowChange change;
  change.what = static_cast<uint32_t>(WindowEvent::kDropped);
  change.first_segment = range.first;
  change.last_segment = range.last;
  change.reason = reason;
  change.payloads = segment.facts.payloads;
  change.payload_bytes = segment.facts.payload_bytes;
  const EventHead head{kLogThread, log_seq_++, MonotonicNs()};
  const std::string event = EncodeEventToString(head, change);
  // On a full disk it is this file that makes room for the event.
  const bool room = writer_->HasRoomForEvents(event.size());
  if (!room) writer_->DropSegment(number);
  writer_->AddEvent(AsBytes(event));
  if (!WriteBatch()) {
    --log_seq_;  // it was not written
    return false;
  }
  if (room) writer_->DropSegment(number);
  return true;
}

// The oldest one that is not marked and does not grow any more.
bool Drainer::DropOldest(const char* reason) {
  const std::vector<SegmentFile>& segments = writer_->segments();
  const auto oldest = std::find_if(segments.begin(), segments.end() - 1, [&](const auto& segment) {
    return !window_.Marked(segment.facts.number);
  });
  if (oldest == segments.end() - 1) return false;
  if (window_.limited_by_budget() && !label_.empty() && !std::exchange(said_dropping_, true)) {
    const std::string line = "deja: " + label_ +
                             ": the disk budget is reached; from here on the oldest contents of "
                             "tensors are dropped for new ones\n";
    (void)!write(STDERR_FILENO, line.data(), line.size());
  }
  return DropSegment(*oldest, reason);
}

// What this rank's events say about collectives, and whether any rank's do.
void Drainer::LookForHang() {
  const uint64_t now = MonotonicNs();
  if (std::exchange(ops_seen_, writer_->batches_with_ops()) != writer_->batches_with_ops())
    return window_.Progress(now);
  if (hang_after_ns_ == 0 || is_child_ || !window_.Hangs(hang_after_ns_, now)) return;
  const std::string what =
      "no collective for " + std::to_string(hang_after_ns_ / 1000000000) + " s";
  const std::string line = "deja: " + label_ + ": " + what + ": a hang? The window is kept\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
  (void)LeaveMark(trace_dir_, "hang: " + what);
}

void Drainer::LookForMark() {
  while (access(MarkPath(trace_dir_, next_mark_).c_str(), F_OK) == 0) {
    const std::string reason = ReadMark(trace_dir_, next_mark_);
    window_.Mark(next_mark_++);
    const std::vector<SegmentFile>& segments = writer_->segments();
    WindowChange change;
    change.what = static_cast<uint32_t>(WindowEvent::kMarked);
    change.first_segment = segments.front().facts.number;
    // Also what is on its way to a segment that is not there yet.
    change.last_segment = window_.marked_end() - 1;
    change.reason = reason;
    const EventHead head{kLogThread, log_seq_++, MonotonicNs()};
    writer_->AddEvent(AsBytes(EncodeEventToString(head, change)));
  }
}

void Drainer::DropExpired() {
  const uint64_t now = MonotonicNs();
  for (size_t i = 0; i + 1 < writer_->segments().size();) {
    const SegmentFile& segment = writer_->segments()[i];
    if (!window_.Expired(segment.facts, segment.ended_ns, now)) {
      ++i;
    } else if (!DropSegment(segment, "")) {
      return;
    }
  }
}

void Drainer::MoveWindow() {
  LookForHang();
  LookForMark();
  window_.Turn(writer_->segments().back().facts.number, writer_->newest_segment_bytes(),
               MonotonicNs());
  DropExpired();
}

}  // namespace deja::format
