// EventRing: one thread's events on their way to the background thread, in the tail.
//
// A single-producer, single-consumer byte ring (tail_format.h). Producer and drainer functions may
// run at the same time; each side is one thread at a time, and what changes hands (the ring of an
// ended thread) does so under a lock of the RankLog.
#ifndef DEJA_FORMAT_EVENT_RING_H_
#define DEJA_FORMAT_EVENT_RING_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "format/rank_log.h"
#include "format/tail_format.h"

namespace deja::format {

// Low half of XXH3-64; event_ring.cc.
uint32_t RecordCheck(const std::byte* bytes, size_t size);

class EventRing {
 public:
  void Attach(RingInfo* info, std::byte* data, uint64_t bytes) {
    info_ = info;
    data_ = data;
    capacity_ = bytes;
    wake_at_.store(bytes / 2, std::memory_order_relaxed);
  }

  // ---- Producer

  // False if there is no room now. The event is durable when this returns.
  bool TryAppend(std::span<const std::byte> event) {
    const uint64_t need = RecordBytes(event.size());
    if (head_ + need - known_tail_ > capacity_) {
      known_tail_ = info_->tail.load(std::memory_order_acquire);
      if (head_ + need - known_tail_ > capacity_) return false;
    }
    const RecordHeader header = {static_cast<uint32_t>(event.size()),
                                 RecordCheck(event.data(), event.size())};
    // A record header never straddles the end: records are multiples of 8.
    std::memcpy(data_ + Index(head_), &header, sizeof header);
    const uint64_t begin = Index(head_ + sizeof header);
    const uint64_t first = std::min<uint64_t>(event.size(), capacity_ - begin);
    std::memcpy(data_ + begin, event.data(), first);
    if (first < event.size()) std::memcpy(data_, event.data() + first, event.size() - first);
    head_ += need;
    ++records_;
    info_->records.store(records_, std::memory_order_relaxed);
    info_->head.store(head_, std::memory_order_release);
    return true;
  }
  // True when the ring is so full that the drainer should come.
  [[nodiscard]] bool WantsDrain() const {
    return head_ >= wake_at_.load(std::memory_order_relaxed);
  }

  // ---- Drainer

  [[nodiscard]] uint64_t head() const { return info_->head.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t tail() const { return info_->tail.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t records() const { return info_->records.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t capacity() const { return capacity_; }

  // The record at `position`, which is before `end`; empty if the program has overwritten it.
  // `scratch` serves where it straddles the end of the ring; it has kMaxEventBytes.
  std::span<const std::byte> Read(uint64_t position, uint64_t end, std::byte* scratch) const {
    RecordHeader header;
    std::memcpy(&header, data_ + Index(position), sizeof header);
    if (header.length == 0 || header.length > kMaxEventBytes ||
        RecordBytes(header.length) > end - position) {
      return {};
    }
    const uint64_t begin = Index(position + sizeof header);
    const uint64_t first = std::min<uint64_t>(header.length, capacity_ - begin);
    if (first == header.length) return {data_ + begin, header.length};
    std::memcpy(scratch, data_ + begin, first);
    std::memcpy(scratch + first, data_, header.length - first);
    return {scratch, header.length};
  }
  // Everything before `position` is in the folder.
  void Release(uint64_t position) {
    wake_at_.store(position + capacity_ / 2, std::memory_order_relaxed);
    info_->tail.store(position, std::memory_order_release);
  }

 private:
  [[nodiscard]] uint64_t Index(uint64_t position) const { return position & (capacity_ - 1); }

  RingInfo* info_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t head_ = 0;  // the producer's copies
  uint64_t known_tail_ = 0;
  uint64_t records_ = 0;
  alignas(64) std::atomic<uint64_t> wake_at_{0};
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_EVENT_RING_H_
