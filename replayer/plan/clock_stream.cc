#include "replayer/plan/clock_stream.h"

#include "format/wire/wire.h"
#include "replayer/plan/wrapping_time.h"

namespace deja::replayer {
namespace {

// Differences of what a trace says, which may be anything.

int64_t ReadDifference(const std::string& packed, size_t& at) {
  uint64_t bits = 0;
  for (uint32_t shift = 0; at < packed.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(packed[at++]);
    bits |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) break;
  }
  return format::UnZigZag(bits);
}

}  // namespace

void ClockStream::Add(uint64_t segment, int64_t value) {
  size_before_ = packed_.size();
  last_before_ = last_;
  for (uint64_t bits = format::ZigZag(WrappingMinus(value, last_));; bits >>= 7) {
    const bool more = bits >= 0x80;
    packed_ += static_cast<char>((bits & 0x7f) | (more ? 0x80 : 0));
    if (!more) break;
  }
  last_ = value;
  if (pieces_.empty() || pieces_.back().segment != segment || pieces_.back().count == UINT32_MAX)
    pieces_.push_back({segment, 0});
  ++pieces_.back().count;
}

bool ClockStream::TakeLast() {
  if (pieces_.empty() || size_before_ == packed_.size()) return false;
  packed_.resize(size_before_);
  last_ = last_before_;
  if (--pieces_.back().count == 0) pieces_.pop_back();
  return true;
}

int64_t ClockStream::Cursor::Take() {
  value_ = WrappingPlus(value_, ReadDifference(stream_->packed_, at_));
  if (++used_ == stream_->pieces_[piece_].count) {
    ++piece_;
    used_ = 0;
  }
  return value_;
}

std::optional<int64_t> ClockStream::Cursor::Next(uint64_t segment) {
  if (stream_ == nullptr) return std::nullopt;
  const auto& pieces = stream_->pieces_;
  while (piece_ < pieces.size() && pieces[piece_].segment < segment) Take();
  if (piece_ == pieces.size() || pieces[piece_].segment != segment) return std::nullopt;
  return Take();
}

std::optional<int64_t> ClockStream::Cursor::Peek() const {
  if (stream_ == nullptr || piece_ == stream_->pieces_.size()) return std::nullopt;
  size_t at = at_;
  return WrappingPlus(value_, ReadDifference(stream_->packed_, at));
}

}  // namespace deja::replayer
