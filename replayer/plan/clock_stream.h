// ClockStream: the recorded readings of one clock by one thread, packed.
//
// A long recording has many of them, so they are kept as differences, two or three bytes each.
// Readings belong to a segment: how many other things that a replay serves in order (calls,
// entropy, snapshots) their thread had done before. A thread that reads a clock more or less often
// than recorded is in step again in its next segment.
//
// A stream is built once and then constant; any thread may have cursors on it.
#ifndef DEJA_REPLAYER_PLAN_CLOCK_STREAM_H_
#define DEJA_REPLAYER_PLAN_CLOCK_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace deja::replayer {

class ClockStream {
 public:
  // In the thread's order; `segment` never decreases.
  void Add(uint64_t segment, int64_t value);
  // Leaves out the reading that was added last. False: it has been, or there is none.
  bool TakeLast();
  [[nodiscard]] bool empty() const { return pieces_.empty(); }

  class Cursor {
   public:
    explicit Cursor(const ClockStream* stream = nullptr) : stream_(stream) {}
    // The next reading of `segment`, if there is one; those of earlier segments are skipped.
    std::optional<int64_t> Next(uint64_t segment);
    // The next reading of any segment, which stays.
    [[nodiscard]] std::optional<int64_t> Peek() const;

   private:
    int64_t Take();

    const ClockStream* stream_;
    size_t at_ = 0;  // in packed_
    int64_t value_ = 0;
    size_t piece_ = 0;
    uint32_t used_ = 0;  // of the piece
  };

 private:
  struct Piece {
    uint64_t segment;
    uint32_t count;
  };

  std::string packed_;  // differences, zigzag varints
  std::vector<Piece> pieces_;
  int64_t last_ = 0;
  size_t size_before_ = 0;  // of packed_, before the last reading
  int64_t last_before_ = 0;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_CLOCK_STREAM_H_
