// LockStream: what one thread did to locks in the recording, packed to two or three bytes each.
//
// Each reading belongs to a segment, as those of clocks do (clock_stream.h). A stream is built once
// and then constant; any thread may have cursors on it.
#ifndef DEJA_REPLAYER_PLAN_LOCK_STREAM_H_
#define DEJA_REPLAYER_PLAN_LOCK_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/tail/lock_reading.h"

namespace deja::replayer {

class LockStream {
 public:
  // In the thread's order; `segment` never decreases.
  void Add(uint64_t segment, format::ClockSource source, int64_t value);
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] uint64_t size() const { return count_; }

  // A place between two readings: copies go their own ways.
  class Cursor {
   public:
    explicit Cursor(const LockStream* stream = nullptr);
    // The next reading; null: it was the last. It stays until the cursor is moved.
    [[nodiscard]] const format::LockReading* Peek() const { return has_next_ ? &next_ : nullptr; }
    // The segment of what Peek returns.
    [[nodiscard]] uint64_t segment() const { return stream_->pieces_[piece_].segment; }
    void Move();
    // Readings before it.
    [[nodiscard]] uint64_t passed() const { return passed_; }

   private:
    void Decode();

    const LockStream* stream_;
    size_t at_ = 0;  // in packed_, after the next reading
    size_t piece_ = 0;
    uint32_t used_ = 0;  // of the piece
    uint64_t passed_ = 0;
    bool has_next_ = false;
    format::LockReading next_;
    std::array<int64_t, format::kReadingSources> last_{};  // by source
  };

 private:
  struct Piece {
    uint64_t segment;
    uint32_t count;
  };

  std::string packed_;  // a source, and the difference to its last value as a zigzag varint
  std::vector<Piece> pieces_;
  uint64_t count_ = 0;
  std::array<int64_t, format::kReadingSources> last_{};
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_LOCK_STREAM_H_
