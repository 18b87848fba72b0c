#include "format/reader/event_cursor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "format/wire/frame_format.h"
#include "format/wire/frame_reader.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

using Bytes = std::vector<std::byte>;

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
  EventCursorImpl(const ReadFile* file, const BatchList* batches,
                  std::shared_ptr<const TailReader> tail, const TailEvents* tail_events,
                  size_t first_batch, size_t end_batch)
      : reader_(*file),
        file_(file),
        batches_(batches),
        tail_(std::move(tail)),
        tail_events_(tail_events),
        next_batch_(first_batch),
        end_batch_(std::min(end_batch, batches->size())) {}

  const Event* Next() override { return NextOf(~uint64_t{0}); }
  const Event* NextOf(uint64_t kinds) override {
    for (;;) {
      std::span<const std::byte> encoded;
      if (!NextEncoded(encoded)) {
        if (LoadBatch()) continue;
        // A caller that wants no event looks for damage.
        if (kinds == 0 && end_batch_ == batches_->size()) CheckOtherFrames();
        return nullptr;
      }
      if (kinds != ~uint64_t{0}) {
        const uint32_t field = PeekBodyField(encoded);
        if (field >= 64 || (kinds >> field & 1) == 0) continue;
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

  // The header and blocks of the index were made again where they are damaged, and did not show so
  // far.
  void CheckOtherFrames() {
    if (end_batch_ == 0) return;
    const BatchInfo& last = batches_->back();
    CheckFrames(kMagicBytes, (*batches_)[0].offset);
    if (last.size != 0) CheckFrames(last.offset + last.size, file_->size());
  }

  void CheckFrames(uint64_t from, uint64_t to) {
    reader_.Seek(from);
    Bytes payload;
    while (damage_.empty() && reader_.position() < to) {
      const FrameResult frame = reader_.Next(payload);
      if (frame.outcome == FrameOutcome::kCorrupt) damage_ = Where(frame.offset) + frame.reason;
      if (frame.outcome == FrameOutcome::kTornTail || frame.outcome == FrameOutcome::kCleanEnd)
        return;
    }
  }

  [[nodiscard]] std::string Where(uint64_t offset) const {
    return file_->name() + ", offset " + std::to_string(offset) + ": ";
  }

  void Damaged(const std::string& what) {
    ++damaged_batches_;
    if (!damage_.empty()) return;
    const BatchInfo& info = (*batches_)[batch_number()];
    damage_ = Where(info.offset) + what;
  }

  FrameReader reader_;
  const ReadFile* file_;
  const BatchList* batches_;
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

}  // namespace

std::unique_ptr<EventCursor> MakeEventCursor(const ReadFile& file, const BatchList& batches,
                                             std::shared_ptr<const TailReader> tail,
                                             const TailEvents& tail_events, size_t first_batch,
                                             size_t end_batch) {
  return std::make_unique<EventCursorImpl>(&file, &batches, std::move(tail), &tail_events,
                                           first_batch, end_batch);
}

}  // namespace deja::format
