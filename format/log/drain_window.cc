// The part of the Drainer that moves the window: which file a payload goes to, and which old files
// are removed.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/runtime/futex.h"
#include "format/layout/mark.h"
#include "format/log/drainer.h"
#include "format/log/rank_log.h"
#include "format/wire/message_codec.h"

namespace deja::format {

// The segment that the block asks for or a later one, with room in the budget.
Status Drainer::MakePlaceFor(const BlockHeader& block) {
  if (!is_rank()) return {};
  const uint32_t current = writer_->segments().back().facts.number;
  window_.Turn(current, writer_->newest_segment_bytes(), MonotonicNs());
  if (block.segment > current) {
    DEJA_RETURN_IF_ERROR(writer_->AdvanceTo(block.segment, MonotonicNs()));
    DropExpired();
  }
  return window_.has_limit() ? StayWithinLimit(block.size) : Status();
}

// Drops the oldest segments until there is room for `bytes` more.
Status Drainer::StayWithinLimit(uint64_t more) {
  const uint64_t limit = window_.Limit(writer_->event_file_bytes());
  while (writer_->payload_file_bytes() + more > limit) {
    if (DropOldest(window_.limited_by_budget() ? "disk budget" : "size")) continue;
    const SegmentFile& newest = writer_->segments().back();
    if (writer_->segments().size() > 1 || window_.marked_end() != 0)
      return Fail(ErrorCode::kLimit, "marked windows fill the disk budget");
    if (!newest.has_chunks)
      return Fail(ErrorCode::kLimit,
                  "the disk budget leaves no room for " + std::to_string(more) + " bytes");
    // It may go when it is not the one that grows.
    const uint32_t next = window_.Next(newest.facts.number);
    DEJA_RETURN_IF_ERROR(writer_->BeginSegment(next, MonotonicNs()));
  }
  return {};
}

void Drainer::Publish(bool last) {
  if (is_rank())
    window_.Published(writer_->payload_file_bytes() + writer_->event_file_bytes(), last);
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
  part.segment = block.segment;
  DEJA_ASSIGN_OR_RETURN([[maybe_unused]] const bool whole, writer_->WritePayload(part));
  Publish(false);
  return {};
}

// Says that the segment is gone, and then removes it: a reader that misses the file knows why.
bool Drainer::DropSegment(const SegmentFile& segment, const char* reason) {
  const uint32_t number = segment.facts.number;
  const WindowChange change = writer_->Dropping(segment, reason);
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
  Publish(false);  // who is killed now leaves no more than this
  return true;
}

// The oldest one that is not marked and does not grow any more.
bool Drainer::DropOldest(const char* reason) {
  const std::vector<SegmentFile>& segments = writer_->segments();
  const auto oldest = std::find_if(segments.begin(), segments.end() - 1, [&](const auto& segment) {
    return !window_.Marked(segment.MeantFor().first);
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
    const SegmentRange meant = segment.MeantFor();
    // An older one that stays is not said to be dropped, so what belongs to it stays, too.
    const bool belongs = i != 0 && writer_->segments()[i - 1].facts.number >= meant.first;
    const bool expired = !belongs && window_.Expired(segment.facts, meant, segment.ended_ns, now);
    // What is there when a mark is left stays, however long it is until the next pass.
    if (expired) LookForMark();
    if (!expired || window_.Marked(meant.first)) {
      ++i;
    } else if (!DropSegment(segment, "")) {
      return;
    }
  }
}

// A child process may have nothing more to keep for a long time: what it has kept is complete when
// the ranks go on.
Status Drainer::CompleteSegment() {
  const SegmentFile& newest = writer_->segments().back();
  if (!window_.follows() || !newest.has_chunks || window_.segment() <= newest.facts.number)
    return {};
  return writer_->BeginSegment(window_.segment(), MonotonicNs());
}

void Drainer::MoveWindow() {
  window_.LookForOwner();
  LookForHang();
  LookForMark();
  // What a disk refuses here is tried again with the next payload.
  (void)CompleteSegment();
  window_.Turn(writer_->segments().back().facts.number, writer_->newest_segment_bytes(),
               MonotonicNs());
  DropExpired();
  if (!window_.has_limit()) return;
  // There may be more processes now that share the budget.
  const uint64_t limit = window_.Limit(writer_->event_file_bytes());
  while (writer_->payload_file_bytes() > limit && DropOldest("disk budget")) {
  }
}

}  // namespace deja::format
