// RingProducer: the end of an event ring at which its thread puts events in (tail_format.h).
//
// Everything that the thread changes is in one line of the cache, and what the other end changes
// (RingGate) in another. One thread at a time; a signal handler on that thread if it interrupted
// nothing that is `busy`.
#ifndef DEJA_FORMAT_TAIL_RING_PRODUCER_H_
#define DEJA_FORMAT_TAIL_RING_PRODUCER_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "format/tail/raw_event.h"
#include "format/tail/tail_format.h"

namespace deja::format {

// Low half of XXH3-64; event_ring.cc.
uint32_t RecordCheck(const std::byte* bytes, size_t size);

// What the drainer tells the thread.
struct alignas(64) RingGate {
  // When `head` is here the drainer should come.
  std::atomic<uint64_t> wake_at{0};
  // Set for good: raw events are not taken any more, others by who knows why.
  std::atomic<bool> closed{false};
};

class alignas(64) RingProducer {
 public:
  void Attach(RingInfo* info, std::byte* data, uint64_t bytes, const RingGate* gate) {
    info_ = info;
    data_ = data;
    capacity_ = bytes;
    gate_ = gate;
  }

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
    Publish(need);
    return true;
  }

  // Puts the event in as it is, durable when this returns. False where that is not as simple as it
  // is nearly always: then the event is to be encoded and appended.
  template <typename Body>
  bool TryAppendRaw(const EventHead& head, const Body& body) {
    if (gate_ == nullptr) return false;
    const size_t bound = RawRecordBound(body);
    SetBusy();
    const uint64_t index = Index(head_);
    // Where the drainer has to be woken, at half of the ring, there is room for more.
    const bool simple = bound <= kMaxRawBytes && index + bound <= capacity_ &&
                        head_ + bound <= gate_->wake_at.load(std::memory_order_acquire) &&
                        !gate_->closed.load(std::memory_order_relaxed);
    if (simple) {
      FetchAhead(head_ + kFetchAhead);
      FetchAhead(head_ + kFetchAhead + 64);
      Publish(WriteRawRecord(head, body, head_, data_ + index));
    }
    SetIdle();
    return simple;
  }

  [[nodiscard]] uint64_t records() const { return records_; }
  // True when the ring is so full that the drainer should come.
  [[nodiscard]] bool WantsDrain() const {
    return head_ >= gate_->wake_at.load(std::memory_order_relaxed);
  }
  // The thread is at work here. RankLog::Finish waits until no thread is. A barrier on its own side
  // orders this before what the thread reads afterwards, so that it costs nothing here.
  // `is_counted`: the thread has counted the event already.
  [[nodiscard]] bool busy() const { return busy_.load(std::memory_order_relaxed); }
  void SetBusy(bool is_counted = false) {
    is_counted_ = is_counted;
    begin_ = static_cast<uint32_t>(records_);
    busy_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // While it is busy: the event is there, and its thread has not counted it yet.
  [[nodiscard]] bool has_published() const {
    return !is_counted_ && begin_ != static_cast<uint32_t>(records_);
  }
  void SetIdle() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    busy_.store(false, std::memory_order_release);
  }

 private:
  [[nodiscard]] uint64_t Index(uint64_t position) const { return position & (capacity_ - 1); }
  // Lines that the other end has read come from its core: they are asked for before they are
  // needed.
  static constexpr uint64_t kFetchAhead = 512;
  void FetchAhead(uint64_t position) const {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(data_[Index(position)]));
#else
    __builtin_prefetch(data_ + Index(position), 1);
#endif
  }
  void Publish(uint64_t bytes) {
    head_ += bytes;
    ++records_;
    info_->records.store(records_, std::memory_order_relaxed);
    info_->head.store(head_, std::memory_order_release);
  }

  RingInfo* info_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t head_ = 0;
  uint64_t known_tail_ = 0;
  uint64_t records_ = 0;
  const RingGate* gate_ = nullptr;
  std::atomic<bool> busy_{false};
  bool is_counted_ = false;  // what is put in is no event that its thread still has to count
  uint32_t begin_ = 0;       // low half of records_ when it became busy
};
static_assert(sizeof(RingProducer) == 64);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_RING_PRODUCER_H_
