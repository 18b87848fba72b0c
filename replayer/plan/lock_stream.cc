#include "replayer/plan/lock_stream.h"

#include "format/wire/wire.h"
#include "replayer/plan/wrapping_time.h"

namespace deja::replayer {

void LockStream::Add(uint64_t segment, format::ClockSource source, int64_t value) {
  format::LockReading reading;
  if (!format::ReadLock(source, value, reading)) return;  // of a newer version
  const auto number = static_cast<uint8_t>(source);
  packed_ += static_cast<char>(number);
  for (uint64_t bits = format::ZigZag(WrappingMinus(value, last_[number]));; bits >>= 7) {
    const bool more = bits >= 0x80;
    packed_ += static_cast<char>((bits & 0x7f) | (more ? 0x80 : 0));
    if (!more) break;
  }
  last_[number] = value;
  if (pieces_.empty() || pieces_.back().segment != segment || pieces_.back().count == UINT32_MAX)
    pieces_.push_back({segment, 0});
  ++pieces_.back().count;
  ++count_;
}

LockStream::Cursor::Cursor(const LockStream* stream) : stream_(stream) {
  if (stream_ != nullptr) Decode();
}

void LockStream::Cursor::Decode() {
  has_next_ = false;
  if (at_ >= stream_->packed_.size()) return;
  const std::string& packed = stream_->packed_;
  const auto number = static_cast<uint8_t>(packed[at_++]);
  uint64_t bits = 0;
  for (uint32_t shift = 0; at_ < packed.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(packed[at_++]);
    bits |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) break;
  }
  last_[number] = WrappingPlus(last_[number], format::UnZigZag(bits));
  has_next_ = format::ReadLock(static_cast<format::ClockSource>(number), last_[number], next_);
}

void LockStream::Cursor::Move() {
  ++passed_;
  if (++used_ == stream_->pieces_[piece_].count) {
    ++piece_;
    used_ = 0;
  }
  Decode();
}

}  // namespace deja::replayer
