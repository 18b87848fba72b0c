#include "format/reader/live_events.h"

#include <algorithm>
#include <span>

#include "format/layout/payload_segments.h"
#include "format/wire/message_codec.h"

namespace deja::format {

Result<std::unique_ptr<LiveEvents>> LiveEvents::Open(const std::string& folder) {
  auto live = std::unique_ptr<LiveEvents>(new LiveEvents(folder));
  DEJA_RETURN_IF_ERROR(live->ReadHeader());
  return live;
}

Status LiveEvents::ReadHeader() {
  DEJA_ASSIGN_OR_RETURN(const auto file, OpenReadFile(folder_ + "/" + kEventsFile));
  FrameReader reader(*file);
  DEJA_RETURN_IF_ERROR(reader.CheckMagic());
  const FrameResult frame = reader.ReadAt(kMagicBytes, header_bytes_);
  header_.format_major = 0;
  if (frame.outcome != FrameOutcome::kRecord || frame.type != FrameType::kHeader ||
      !Decode(header_bytes_, header_) || header_.format_major == 0)
    return Fail(
        frame.outcome == FrameOutcome::kTornTail ? ErrorCode::kTruncated : ErrorCode::kCorrupt,
        "opening " + file->name() + ": the header cannot be read");
  position_ = kMagicBytes + frame.size;
  return {};
}

Status LiveEvents::Poll(const Sink& sink) {
  // The tail first: what the process drains meanwhile is then seen twice, and known by its number.
  has_live_tail_ = false;
  std::unique_ptr<TailReader> tail;
  if (!is_finished_ && !header_.tail.path.empty() && header_.tail.id.size() == 16)
    if (auto opened = TailReader::Open(std::string(header_.tail.path), header_.tail.id))
      tail = std::move(*opened);
  DEJA_RETURN_IF_ERROR(ReadFrames(sink));
  if (tail == nullptr || is_finished_) return {};
  has_live_tail_ = tail->WriterAlive();
  TakeTail(*tail, sink);
  return {};
}

Status LiveEvents::ReadFrames(const Sink& sink) {
  DEJA_ASSIGN_OR_RETURN(const auto file, OpenReadFile(folder_ + "/" + kEventsFile));
  if (file->size() < position_)
    return Fail(ErrorCode::kTruncated,
                "reading " + file->name() + ": it is shorter than it was; another run writes it");
  FrameReader reader(*file);
  reader.Seek(position_);
  for (;;) {
    const FrameResult frame = reader.Next(payload_);
    if (frame.outcome == FrameOutcome::kTornTail) return {};  // the rest of it may come
    if (frame.outcome == FrameOutcome::kCleanEnd) {
      is_finished_ = true;
      return {};
    }
    position_ = reader.position();
    if (frame.outcome == FrameOutcome::kCorrupt) {
      Damaged(file->name(), frame.offset, frame.reason);
    } else if (frame.type == FrameType::kEvents) {
      TakeBatch(frame, file->name(), sink);
    } else if (frame.type == FrameType::kFooter) {
      footer_bytes_ = payload_;
      if (!Decode(footer_bytes_, footer_)) footer_ = Footer{};
    }
  }
}

void LiveEvents::Damaged(const std::string& file, uint64_t offset, const std::string& what) {
  ++damaged_frames_;
  if (damage_.empty()) damage_ = file + ", offset " + std::to_string(offset) + ": " + what;
}

void LiveEvents::TakeBatch(const FrameResult& frame, const std::string& file, const Sink& sink) {
  WireReader in_batch(payload_);
  std::span<const std::byte> encoded;
  Event event;
  while (NextInBatch(in_batch, encoded)) {
    if (!DecodeEvent(encoded, event)) {
      Damaged(file, frame.offset, "an event cannot be decoded");
      return;
    }
    TakeInOrder(event, sink);
  }
}

void LiveEvents::TakeTail(const TailReader& tail, const Sink& sink) {
  const auto& events = tail.events();
  const size_t from_rings = events.size() - std::min(events.size(), tail.emergency_events());
  Event event;
  for (size_t i = 0; i < events.size(); ++i) {
    if (!DecodeEvent(events[i], event)) continue;
    if (i < from_rings) {
      TakeInOrder(event, sink);
    } else if (emergencies_.insert({event.thread, event.seq}).second) {
      sink(event);
    }
  }
}

void LiveEvents::TakeInOrder(const Event& event, const Sink& sink) {
  uint64_t& next = next_seq_[event.thread];
  if (event.seq < next) return;
  next = event.seq + 1;
  if (!emergencies_.contains({event.thread, event.seq})) sink(event);
}

}  // namespace deja::format
