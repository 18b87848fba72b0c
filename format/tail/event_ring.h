// EventRing: one thread's events on their way to the background thread, in the tail.
//
// A single-producer, single-consumer byte ring (tail_format.h). RingProducer is the other end; this
// is the drainer's. Both may be at work at the same time; each side is one thread at a time. The
// ring of an ended thread changes hands under a lock of the RankLog.
#ifndef DEJA_FORMAT_TAIL_EVENT_RING_H_
#define DEJA_FORMAT_TAIL_EVENT_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/tail/ring_producer.h"
#include "format/tail/tail_format.h"

namespace deja::format {

class EventRing {
 public:
  // What Read found: the record takes `bytes` in the ring. No event: the program has overwritten
  // it.
  struct Record {
    std::span<const std::byte> event;
    uint64_t bytes = 0;
  };

  // Connects to ring memory of `bytes` bytes, a power of two. Borrows both.
  void Attach(RingInfo* info, std::byte* data, uint64_t bytes) {
    info_ = info;
    data_ = data;
    capacity_ = bytes;
    gate_.wake_at.store(bytes / 2, std::memory_order_relaxed);
  }
  [[nodiscard]] const RingGate& gate() const { return gate_; }
  // For good, and also if it is not attached yet. Any thread.
  void Close() { gate_.closed.store(true, std::memory_order_relaxed); }

  [[nodiscard]] uint64_t head() const { return info_->head.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t tail() const { return info_->tail.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t records() const { return info_->records.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t capacity() const { return capacity_; }

  // The encoded event of the record at `position`, which is before `end`. `scratch`, which has
  // kMaxEventBytes, serves where it straddles the end of the ring, or is raw.
  Record Read(uint64_t position, uint64_t end, std::span<std::byte> scratch) const;
  // Everything before `position` is in the folder.
  void Release(uint64_t position) {
    // Raw events are written up to there without a look at the tail.
    gate_.wake_at.store(position + capacity_ / 2, std::memory_order_release);
    info_->tail.store(position, std::memory_order_release);
  }

 private:
  [[nodiscard]] uint64_t Index(uint64_t position) const { return position & (capacity_ - 1); }

  RingInfo* info_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t capacity_ = 0;
  RingGate gate_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_EVENT_RING_H_
